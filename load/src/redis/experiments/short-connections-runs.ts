import type { Transport } from '@onetrip/stack/address.ts'
import type { RedisBuild } from '@onetrip/stack/redis.ts'
import {
  generateLoad,
  holdConnections,
  type Latency,
  type Load,
} from '../../drivers/redis/generator/load.ts'
import { fillKeys } from '../../drivers/redis/keys.ts'
import { countSystemCalls, type SystemCalls } from '../../drivers/redis/system-calls.ts'
import { type CpuUse, cpuBetween } from '../../drivers/redis/threads.ts'
import type { Context, Server } from '../experiment.ts'

/** One Redis of the comparison, and what it is beside. */
export interface Case {
  build: RedisBuild
  ioThreads: number
  /** Connections that are open all the time and do nothing. */
  idle: number
}

export interface Way extends Case {
  transport: Transport
}

/** One run with short connections. */
export interface ShortRun {
  connections: number
  connectionsPerSecond: number
  /** Per connection. */
  mainCpuMicros: number
  cpuMicros: number
  /** Share of the time in which Redis's main thread wanted to run. */
  mainDemand: number
  /** Of the whole run, by thread, in seconds. */
  byThread: Record<string, number>
  latency: Latency
  errors: Load['errors']
  replyErrors: number
  /** Of the generator. */
  generator: Pick<Load, 'cpuSeconds' | 'demand' | 'backlogFull'>
}

/** One run of long connections, with short ones beside them or not. */
export interface LongRun {
  commandsPerSecond: number
  latency: Latency
  /** Per command; null where short connections have their share in it. */
  mainCpuMicros: number | null
  generator: Pick<Load, 'cpuSeconds' | 'demand'>
}

const COMMAND = ['GET', '{key}']
const VALUE_BYTES = 3 // as redis-benchmark's

/**
 * Starts a Redis per case, with its idle connections.
 *
 * @param maxclients Default: with room for all connections twice.
 */
export async function startCases(
  context: Context,
  cases: readonly Case[],
  { connections, maxclients }: { connections: number; maxclients: number | undefined },
): Promise<Map<Case, Server>> {
  const servers = new Map<Case, Server>()
  for (const one of cases) {
    const server = await context.startRedis({
      build: one.build,
      config: {
        'io-threads': String(one.ioThreads),
        // A client closes and connects anew before Redis has noticed the former.
        maxclients: String(maxclients ?? Math.max(10_000, one.idle + 2 * connections + 100)),
      },
    })
    await fillKeys(server, 1, VALUE_BYTES)
    const fleet = await holdConnections(server, one.idle, context.signal)
    context.defer(() => fleet.close())
    servers.set(one, server)
  }
  return servers
}

/**
 * Stops all servers but the one that is measured: a Redis with many idle clients looks at each of them
 * every second, which would cost the others CPU.
 *
 * @returns what lets one of them run while something is done with it.
 */
export function takingTurns(context: Context, servers: readonly Server[]) {
  const send = (signal: 'SIGSTOP' | 'SIGCONT', { pid }: Server) => {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended, which whoever waits for it is told.
    }
  }
  for (const server of servers) send('SIGSTOP', server)
  context.defer(() => {
    for (const server of servers) send('SIGCONT', server) // to end, it has to run
  })
  return async <T>(server: Server, work: () => Promise<T>): Promise<T> => {
    send('SIGCONT', server)
    try {
      return await work()
    } finally {
      send('SIGSTOP', server)
    }
  }
}

const targetOf = (server: Server, transport: Transport) =>
  transport === 'tcp' ? { port: server.port } : { socket: server.socket }

interface RunOptions {
  server: Server
  transport: Transport
  /** At the same time. */
  connections: number
  seconds: number
}

/** Opens, uses and closes connections as fast as it goes. */
export async function runShort(
  { signal, progress }: Context,
  { server, transport, connections, seconds }: RunOptions,
): Promise<ShortRun> {
  const before = await server.cpu()
  const load = await generateLoad({
    target: targetOf(server, transport),
    mode: 'short',
    connections,
    end: { seconds },
    command: COMMAND,
    signal,
    onProgress: (rate) => progress.update(`${Math.round(rate).toLocaleString('en-US')}/s`),
  })
  return shortRunOf(load, cpuBetween(before, await server.cpu()))
}

function shortRunOf(load: Load, cpu: CpuUse): ShortRun {
  const { completed, seconds, latency, errors, replyErrors } = load
  const { cpuSeconds, demand, backlogFull } = load
  return {
    connections: completed,
    connectionsPerSecond: completed / seconds,
    mainCpuMicros: (cpu.mainCpuSeconds * 1e6) / completed,
    cpuMicros: (cpu.cpuSeconds * 1e6) / completed,
    mainDemand: cpu.mainDemand,
    byThread: cpu.byThread,
    latency,
    errors,
    replyErrors,
    generator: { cpuSeconds, demand, backlogFull },
  }
}

/** How many system calls the main thread makes per short connection; null where nobody may count. */
export async function countCalls(
  { signal }: Context,
  { server, transport, connections, seconds }: RunOptions,
): Promise<{ perConnection: number; byName: SystemCalls['byName'] } | null> {
  const { calls, result } = await countSystemCalls(
    server.pid,
    () =>
      generateLoad({
        target: targetOf(server, transport),
        mode: 'short',
        connections,
        end: { seconds },
        command: COMMAND,
        signal,
      }),
    signal,
  )
  if (!calls || result.completed === 0) return null
  const per = (count: number) => count / result.completed
  const names = calls.byName && Object.entries(calls.byName)
  return {
    perConnection: per(calls.total),
    byName: names && Object.fromEntries(names.map(([name, count]) => [name, per(count)])),
  }
}

/** Sends commands over long connections, with short ones beside them if `short` is not 0. */
export async function runLong(
  { signal }: Context,
  { server, transport, connections, seconds, short }: RunOptions & { short: number },
): Promise<LongRun> {
  const common = { target: targetOf(server, transport), command: COMMAND, signal, end: { seconds } }
  const before = await server.cpu()
  const [load] = await Promise.all([
    generateLoad({ ...common, mode: 'long', connections }),
    short > 0 ? generateLoad({ ...common, mode: 'short', connections: short }) : null,
  ])
  const cpu = cpuBetween(before, await server.cpu())
  const { completed, latency, cpuSeconds, demand } = load
  return {
    commandsPerSecond: completed / load.seconds,
    latency,
    mainCpuMicros: short > 0 ? null : (cpu.mainCpuSeconds * 1e6) / completed,
    generator: { cpuSeconds, demand },
  }
}
