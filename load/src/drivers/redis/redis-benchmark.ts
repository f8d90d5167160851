import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Problem } from '@onetrip/stack/problem.ts'
import { buildRedis } from '@onetrip/stack/redis.ts'
import { type CpuReading, cpuBetween, readCpu } from './threads.ts'

/** A run of redis-benchmark, which is one process of one thread. */
export interface Benchmark {
  /** As it was called, without the path of the program. */
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

export interface BenchmarkOptions {
  /** Path of redis-benchmark. */
  program: string
  /** Such as `['-p', '6379', '-c', '50', '-n', '100000', '-t', 'get']`; one test only. */
  args: readonly string[]
  signal: AbortSignal
}

/** From this share of the time on, the generator may be what limited a run. */
export const GENERATOR_LIMIT = 0.95

/**
 * Whether a generator was busy all the time and Redis was not: then the rate is the generator's.
 *
 * @param generator share of the time in which it ran or was ready to; `redis` likewise of its main thread.
 */
export const isLimitedByGenerator = (generator: number, redis: number): boolean =>
  generator >= GENERATOR_LIMIT && redis < GENERATOR_LIMIT

const POLL_MS = 20

/**
 * The path of redis-benchmark, which is built first if it is missing.
 *
 * @throws Problem when it cannot be built; the reason of `signal`.
 */
export async function requireRedisBenchmark(signal: AbortSignal): Promise<string> {
  return join(await buildRedis('tools', signal), 'redis-benchmark')
}

/**
 * Runs redis-benchmark to its end.
 *
 * @throws Problem with what it said when it fails; the reason of `signal`, and it is gone then.
 */
export async function redisBenchmark(options: BenchmarkOptions): Promise<Benchmark> {
  const { program, args, signal } = options
  signal.throwIfAborted()
  const running = promisify(execFile)(program, ['--csv', ...args], {
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
    // A name may have commas in it, but no quotes.
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

/** What a process has used once it has ended is no longer to be read: hence the readings meanwhile. */
async function demandOf(pid: number | undefined, ended: AbortSignal): Promise<number | null> {
  if (pid === undefined) return null
  const readings: CpuReading[] = []
  while (!ended.aborted) {
    const reading = await readCpu(pid).catch(() => null)
    if (reading) readings.push(reading)
    await delay(POLL_MS, undefined, { signal: ended }).catch(() => undefined)
  }
  const [first, last] = [readings[0], readings.at(-1)]
  if (!first || !last || first === last) return null
  return cpuBetween(first, last).mainDemand
}
