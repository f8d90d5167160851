import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Problem } from '@onetrip/stack/problem.ts'
import { buildRedis } from '@onetrip/stack/start-redis.ts'
import { type CpuReading, cpuBetween, readCpu } from './threads.ts'

let program: Promise<string> | undefined

/** Builds redis-benchmark if it is missing, and returns its path. */
export async function requireRedisBenchmark(signal: AbortSignal): Promise<string> {
  program ??= buildRedis('tools', signal).then((folder) => join(folder, 'redis-benchmark'))
  return await program
}

/**
 * Runs redis-benchmark with one thread.
 *
 * @param args such as `['-p', '6379', '-c', '50', '-n', '100000', '-t', 'get']`, with one test only.
 * @returns the figures of `parseCsv`; `demand`: the share of the time in which its thread ran or was ready to run, 0
 *   to 1, or null if the run was too short; `command`: its command line, without the path of the program.
 * @throws Problem with its output when it fails; the reason of `signal`, after killing it.
 */
export async function redisBenchmark(args: readonly string[], signal: AbortSignal) {
  signal.throwIfAborted()
  const options = { signal, killSignal: 'SIGKILL' } as const
  const running = promisify(execFile)(
    await requireRedisBenchmark(signal),
    ['--csv', ...args],
    options,
  )
  let first: CpuReading | undefined
  let last: CpuReading | undefined
  // The CPU time in /proc is not available after the process has ended.
  const watch = setInterval(async () => {
    last = await readCpu(running.child.pid ?? 0).catch(() => last)
    first ??= last
  }, 20)
  try {
    const { stdout } = await running
    const demand = first && last && first !== last ? cpuBetween(first, last).mainDemand : null
    return { ...parseCsv(stdout), demand, command: ['redis-benchmark', ...args].join(' ') }
  } catch (error) {
    signal.throwIfAborted()
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new Problem(`redis-benchmark failed: ${stderr.trim() || message}`, { cause: error })
  } finally {
    clearInterval(watch)
  }
}

/**
 * Parses the CSV output of one test: commands per second, and latency in milliseconds from the write of a pipeline to
 * the first byte of a reply (redis-benchmark counts in steps of 1/125 ms).
 *
 * @throws Error when the text has no figures.
 */
export function parseCsv(text: string) {
  const lines = text.trim().split('\n').slice(-2)
  // The name of a test may contain commas, but no quotes.
  const [names = [], values = []] = lines.map((line) => line.trim().slice(1, -1).split('","'))
  const field = (name: string) => Number(values[names.indexOf(name)])
  const [p50, p99, max] = [
    field('p50_latency_ms'),
    field('p99_latency_ms'),
    field('max_latency_ms'),
  ]
  const figures = { perSecond: field('rps'), p50, p99, max }
  if (Object.values(figures).every(Number.isFinite)) return figures
  throw new Error(`it printed no figures:\n${text}`)
}
