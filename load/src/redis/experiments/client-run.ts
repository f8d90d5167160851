import { redisAddress } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { redisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Context } from '../experiment.ts'
import { isOutOfPorts } from './client-diagnosis.ts'
import { type CallerName, callers, loop, missingKey } from './client-loops.ts'
import type { ClientName, Run } from './client-summary.ts'
import type { Target } from './client-target.ts'

/** How a client is run: by redis-benchmark, or by calls of this process. */
type Way =
  | { by: 'benchmark'; reconnects: boolean }
  | { by: 'calls'; caller: CallerName; width: number; reconnects: boolean }

const ways: Record<ClientName, Way> = {
  benchmark: { by: 'benchmark', reconnects: false },
  raw: { by: 'calls', caller: 'raw', width: 1, reconnects: false },
  ioredis: { by: 'calls', caller: 'ioredis', width: 1, reconnects: false },
  store: { by: 'calls', caller: 'store', width: 1, reconnects: false },
  'store-32': { by: 'calls', caller: 'store', width: 32, reconnects: false },
  'benchmark-reconnect': { by: 'benchmark', reconnects: true },
  reconnect: { by: 'calls', caller: 'reconnect', width: 1, reconnects: true },
  'reconnect-ioredis': { by: 'calls', caller: 'reconnect-ioredis', width: 1, reconnects: true },
}

export interface Bench {
  context: Context
  target: Target
  /** Path of redis-benchmark; null where it cannot be used. */
  program: string | null
  /** What clients have reached so far, which tells how long a run of redis-benchmark takes. */
  rates: Map<ClientName, number>
}

/** The clients that can be run. */
export function runnable({ program }: Pick<Bench, 'program'>): ClientName[] {
  return (Object.keys(ways) as ClientName[]).filter(
    (client) => program !== null || ways[client].by === 'calls',
  )
}

const FIRST_CALLS = 200

/**
 * Runs a client for about so many seconds, or as many commands as the target may be sent.
 *
 * @throws Problem when the server cannot be used, or is not what was expected.
 */
export async function runClient(bench: Bench, client: ClientName, seconds: number): Promise<Run> {
  const { target } = bench
  const way = ways[client]
  const most = way.reconnects ? target.maxConnections : target.maxCalls
  try {
    const run = await (way.by === 'benchmark'
      ? runBenchmark(bench, client, way.reconnects, { seconds, most })
      : runCalls(bench, way, { seconds, most }))
    bench.rates.set(client, run.perSecond)
    return run
  } catch (error) {
    if (!isOutOfPorts(error)) throw unreachable(error, target)
    const none = { perSecond: 0, p50: 0, p99: 0, calls: 0, connections: null, mainMicros: null }
    return { ...none, error: failureOf(error as Error) }
  }
}

interface Extent {
  seconds: number
  most: number
}

async function runBenchmark(
  bench: Bench,
  client: ClientName,
  reconnects: boolean,
  { seconds, most }: Extent,
): Promise<Run> {
  const { context, target, program, rates } = bench
  const { host = '127.0.0.1', port = 6379, path, db = 0 } = redisAddress(target.url).options
  const wanted = Math.ceil((rates.get(client) ?? 0) * seconds)
  const requests = Math.min(most, Math.max(FIRST_CALLS, wanted))
  const args = [
    ...(path ? ['-s', path] : ['-h', host, '-p', String(port)]),
    ...['--dbnum', String(db), '-c', '1', '-n', String(requests), '-k', reconnects ? '0' : '1'],
    ...['GET', missingKey],
  ]
  return await counted(bench, async () => {
    const done = await redisBenchmark({ program: program ?? '', args, signal: context.signal })
    return { perSecond: done.perSecond, p50: done.p50, p99: done.p99, calls: requests, error: null }
  })
}

async function runCalls(
  bench: Bench,
  way: Way & { by: 'calls' },
  { seconds, most }: Extent,
): Promise<Run> {
  const { context, target } = bench
  const caller = await callers[way.caller](target.url)
  try {
    return await counted(bench, async () => {
      const { signal } = context
      const done = await loop(caller, { width: way.width, seconds, maxCalls: most, signal })
      const { calls, p50, p99, error } = done
      return { perSecond: calls / done.seconds, p50, p99, calls, error: failureOf(error) }
    })
  } finally {
    await caller.close()
  }
}

/** An error of the system, not of ours, is about the server: it has gone away meanwhile. */
function unreachable(error: unknown, { name }: Target): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (error instanceof Problem || code === undefined) return error
  return new Problem(`The Redis at ${name} cannot be used any more: ${message}`, { cause: error })
}

function failureOf(error: Error | null): Run['error'] {
  if (error === null) return null
  return { message: error.message, outOfPorts: isOutOfPorts(error) }
}

/** Reads, where it may, what a run cost the server. */
async function counted(
  { target }: Bench,
  work: () => Promise<Omit<Run, 'connections' | 'mainMicros'>>,
): Promise<Run> {
  if (!target.server) return { ...(await work()), connections: null, mainMicros: null }
  const { server } = target
  const monitor = await RedisMonitor.connect(server.url)
  try {
    const [cpuBefore, before] = [await server.cpu(), await monitor.read()]
    const run = await work()
    const [cpuAfter, after] = [await server.cpu(), await monitor.read()]
    const cpu = cpuBetween(cpuBefore, cpuAfter)
    return {
      ...run,
      connections: (after.connections - before.connections) / run.calls,
      mainMicros: (cpu.mainCpuSeconds * 1e6) / run.calls,
    }
  } finally {
    monitor.close()
  }
}
