import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Problem } from '@onetrip/stack/problem.ts'
import { buildRedis } from '@onetrip/stack/redis.ts'
import { type CpuReading, cpuBetween, readCpu } from './threads.ts'

/** A run of redis-benchmark, which is one process of one thread. */
export interface Benchmark {
  /** Without the path of the program. */
  command: string
  /** Commands answered per second. */
  perSecond: number
  /**
   * From the write of a pipeline to the first byte of an answer, in milliseconds; redis-benchmark
   * counts in steps of 1/125.
   */
  p50: number
  p99: number
  max: number
  /** Share of the time, 0 to 1, in which its thread ran or was ready to; null if the run was too short. */
  demand: number | null
}

interface BenchmarkOptions {
  /** Such as `['-p', '6379', '-c', '50', '-n', '100000', '-t', 'get']`; one test only. */
  args: readonly string[]
  signal: AbortSignal
}

let program: Promise<string> | undefined

/** The path of redis-benchmark, which is built first if it is missing. */
export async function requireRedisBenchmark(signal: AbortSignal): Promise<string> {
  program ??= buildRedis('tools', signal).then((folder) => join(folder, 'redis-benchmark'))
  return await program
}

/** @throws Problem with its output when it fails; the reason of `signal`, after killing it. */
export async function redisBenchmark(options: BenchmarkOptions): Promise<Benchmark> {
  const { args, signal } = options
  signal.throwIfAborted()
  const running = promisify(execFile)(await requireRedisBenchmark(signal), ['--csv', ...args], {
    signal,
    killSignal: 'SIGKILL',
  })
  const ended = new AbortController()
  const demand = demandOf(running.child.pid, ended.signal)
  try {
    const { stdout } = await running
    ended.abort()
    const command = ['redis-benchmark', ...args].join(' ')
    return { command, ...parseCsv(stdout), demand: await demand }
  } catch (error) {
    signal.throwIfAborted()
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new Problem(`redis-benchmark failed: ${stderr.trim() || message}`, { cause: error })
  } finally {
    ended.abort()
    await demand
  }
}

/** The one line of figures below the names of the columns. */
export function parseCsv(text: string): Pick<Benchmark, 'perSecond' | 'p50' | 'p99' | 'max'> {
  const [names = [], values = []] = text
    .trim()
    .split('\n')
    .slice(-2)
    // A name may contain commas, but no quotes.
    .map((line) => line.trim().slice(1, -1).split('","'))
  const field = (name: string) => {
    const value = Number(values[names.indexOf(name)] ?? Number.NaN)
    if (Number.isFinite(value)) return value
    throw new Problem(`redis-benchmark printed no ${name}:\n${text}`)
  }
  return {
    perSecond: field('rps'),
    p50: field('p50_latency_ms'),
    p99: field('p99_latency_ms'),
    max: field('max_latency_ms'),
  }
}

/** Reads the CPU time every 20 ms, since the system forgets it when the process ends. */
async function demandOf(pid: number | undefined, ended: AbortSignal): Promise<number | null> {
  let first: CpuReading | undefined
  let last: CpuReading | undefined
  while (pid !== undefined && !ended.aborted) {
    last = await readCpu(pid).catch(() => last)
    first ??= last
    await delay(20, undefined, { signal: ended }).catch(() => undefined)
  }
  return first && last && first !== last ? cpuBetween(first, last).mainDemand : null
}
