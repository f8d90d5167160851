import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { redisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Measured } from '../../experiment/result.ts'
import type { Run } from './runs.ts'

export type Shape = 'get-8000' | 'ping-10000' | 'ping-10000-kept'

interface Given {
  clients: number
  requests: number
  /** As redis-benchmark calls it. */
  test: string
  command: readonly string[]
  /** Whether the connections stay. */
  keep: boolean
}

const ping = { clients: 10_000, requests: 500_000, test: 'ping_mbulk', command: ['PING'] }

/** The calls of redis-benchmark in the documents. */
export const shapes: Readonly<Record<Shape, Given>> = {
  'get-8000': {
    ...{ clients: 8_000, requests: 100_000, test: 'get', command: ['GET', 'key'], keep: false },
  },
  'ping-10000': { ...ping, keep: false },
  'ping-10000-kept': { ...ping, keep: true },
}

export const isShape = (load: string | number | undefined): load is Shape =>
  load !== undefined && Object.hasOwn(shapes, load)

/** Below this share of the time, a main thread is not what limits the rate. */
const RESTED = 0.5

/** @param changed `requests` and `clients`, where they are not the documents'. */
export function benchmarkArguments(
  shape: Shape,
  changed: { readonly requests?: unknown; readonly clients?: unknown },
): string[] {
  const { keep, test, requests, clients } = { ...shapes[shape], ...given(changed) }
  return ['-k', keep ? 1 : 0, '-t', test, '-n', requests, '-c', clients].map(String)
}

/** The options that are set. */
const given = ({ requests, clients }: { requests?: unknown; clients?: unknown }) => ({
  ...(requests !== undefined && { requests: Number(requests) }),
  ...(clients !== undefined && { clients: Number(clients) }),
})

/**
 * Runs redis-benchmark as the documents did, or our generator, which closes a connection without
 * searching for it, in the same way.
 *
 * @param options.program path of redis-benchmark; our generator without it.
 */
export async function runShape(
  { server, target, signal, onProgress }: Run,
  shape: Shape,
  options: { requests?: number; clients?: number; program: string | undefined },
): Promise<Measured> {
  const { keep, command, requests, clients } = { ...shapes[shape], ...given(options) }
  const { program } = options
  const before = await server.cpu()
  const { values, ...run } = program ? await benchmark(program) : await ourGenerator()
  const cpu = cpuBetween(before, await server.cpu())
  return {
    values: {
      ...values,
      mainCpuMicros: (cpu.mainCpuSeconds * 1e6) / requests,
      cpuMicros: (cpu.cpuSeconds * 1e6) / requests,
    },
    ...run,
    // A tool that waits as much as it works is the limit without being busy itself.
    doubts: cpu.mainDemand < RESTED ? ['rested'] : [],
  }

  async function benchmark(program: string): Promise<Measured> {
    const args = ['-p', String(server.port), ...benchmarkArguments(shape, options)]
    const { command, perSecond, p50, p99, max } = await redisBenchmark({ program, args, signal })
    return { values: { requestsPerSecond: perSecond, p50, p99, max }, details: { command } }
  }

  async function ourGenerator(): Promise<Measured> {
    const load = await generateLoad({
      ...{ target, command, signal, onProgress },
      mode: keep ? 'long' : 'short',
      connections: clients,
      end: { replies: requests },
    })
    const { p50, p99, max } = load.latency
    const requestsPerSecond = load.completed / load.seconds
    return { values: { requestsPerSecond, p50, p99, max }, errors: load.errors }
  }
}
