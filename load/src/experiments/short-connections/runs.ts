import type { RedisBuild } from '@onetrip/stack/redis.ts'
import { isLimitedByGenerator } from '../../drivers/generator-limit.ts'
import {
  generateLoad,
  holdConnections,
  type Load,
  type Target,
} from '../../drivers/redis/generator/load.ts'
import { fillKeys } from '../../drivers/redis/keys.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { countSystemCalls, type SystemCalls } from '../../drivers/redis/system-calls.ts'
import { type CpuUse, cpuBetween } from '../../drivers/redis/threads.ts'
import type { Context } from '../../experiment/experiment.ts'
import type { Measured } from '../../experiment/result.ts'
import type { Case } from '../../experiment/shape.ts'

interface Wanted {
  build: RedisBuild
  threads: number
  /** Connections that are open all the time and do nothing. */
  idle: number
}

/** A Redis for each build, number of I/O threads and number of idle connections. */
export interface Servers {
  /** Lets the server of a case run while something is done with it. */
  use<T>(one: Case, work: (server: RedisServer) => Promise<T>): Promise<T>
}

/** One run, on one server. */
export interface Run {
  server: RedisServer
  target: Target
  seconds: number
  signal: AbortSignal
  onProgress: (perSecond: number) => void
}

const COMMAND = ['GET', '{key}']
const VALUE_BYTES = 3 // as redis-benchmark's

/** How long system calls are counted, in seconds. */
const COUNTING_SECONDS = 0.4

/**
 * Starts the servers, with their idle connections, and stops all but the one that is measured (SIGSTOP):
 * a Redis with many idle clients looks at each of them every second, which would cost the others CPU.
 *
 * @param busy connections besides the idle ones.
 * @param maxclients Default: with room for all connections twice.
 */
export async function startServers(
  context: Context,
  wanted: readonly Wanted[],
  busy: number,
  maxclients: number | undefined,
): Promise<Servers> {
  const servers = new Map<string, RedisServer>()
  for (const one of wanted) {
    const server = await context.startRedis({
      build: one.build,
      config: {
        'io-threads': String(one.threads),
        // A client closes and connects anew before Redis has noticed that the former has gone.
        maxclients: String(maxclients ?? Math.max(10_000, one.idle + 2 * busy + 100)),
      },
    })
    await fillKeys(server, 1, VALUE_BYTES)
    const fleet = await holdConnections(server, one.idle, context.signal)
    context.defer(() => fleet.close())
    servers.set(keyOf(one.build, one.threads, one.idle), server)
  }
  for (const server of servers.values()) send('SIGSTOP', server)
  context.defer(() => {
    for (const server of servers.values()) send('SIGCONT', server) // to end, it has to run
  })
  return {
    async use({ build, threads, idle = 0 }, work) {
      const server = servers.get(keyOf(build, threads, idle))
      if (!server) throw new RangeError(`no server for ${build}, ${threads} threads, ${idle} idle`)
      send('SIGCONT', server)
      try {
        return await work(server)
      } finally {
        send('SIGSTOP', server)
      }
    },
  }
}

const keyOf = (...values: (string | number | undefined)[]) => values.join(' ')

function send(signal: 'SIGSTOP' | 'SIGCONT', { pid }: RedisServer): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended, which the context reports.
  }
}

/** Opens, uses and closes connections as fast as possible. */
export async function runShort(run: Run, connections: number): Promise<Measured> {
  const before = await run.server.cpu()
  const load = await generate(run, 'short', connections)
  return measuredOf(load, cpuBetween(before, await run.server.cpu()))
}

/** Sends commands over long connections, with short ones beside them if `short` is not 0. */
export async function runLong(run: Run, connections: number, short: number): Promise<Measured> {
  const before = await run.server.cpu()
  const [load] = await Promise.all([
    generate(run, 'long', connections),
    short > 0 ? generate({ ...run, onProgress: () => {} }, 'short', short) : null,
  ])
  const measured = measuredOf(load, cpuBetween(before, await run.server.cpu()))
  if (short === 0) return measured
  // Short connections have their share in the CPU time.
  return { ...measured, values: { ...measured.values, mainCpuMicros: null, cpuMicros: null } }
}

/** How many system calls the main thread makes per short connection; null where they cannot be counted. */
export async function countSystemCallsOf(
  run: Run,
  connections: number,
): Promise<SystemCalls | null> {
  const { calls, result } = await countSystemCalls(
    run.server.pid,
    () => generate({ ...run, seconds: COUNTING_SECONDS }, 'short', connections),
    run.signal,
  )
  if (!calls || result.completed === 0) return null
  const counts = Object.entries(calls)
  return Object.fromEntries(counts.map(([name, count]) => [name, count / result.completed]))
}

const generate = (
  { target, seconds, signal, onProgress }: Run,
  mode: 'short' | 'long',
  connections: number,
) =>
  generateLoad({
    ...{ target, mode, connections, signal, onProgress },
    ...{ command: COMMAND, end: { seconds } },
  })

function measuredOf(load: Load, cpu: CpuUse): Measured {
  const { completed, seconds, latency } = load
  const { p50, p99, max } = latency
  return {
    values: {
      requestsPerSecond: completed / seconds,
      mainCpuMicros: (cpu.mainCpuSeconds * 1e6) / completed,
      cpuMicros: (cpu.cpuSeconds * 1e6) / completed,
      ...{ p50, p99, max },
    },
    errors: load.errors,
    doubts: isLimitedByGenerator(load.demand, cpu.mainDemand) ? ['generator'] : [],
  }
}
