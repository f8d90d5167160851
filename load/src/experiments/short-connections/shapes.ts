import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { generateLoad, type LoadOptions } from '../../drivers/redis/generator/load.ts'
import { redisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Measured } from '../../experiment/shape.ts'

const ping = { test: 'ping_mbulk', command: ['PING'], clients: 10_000, requests: 500_000 }

/** The calls of redis-benchmark in the source articles. `test` and `keep` are its options -t and -k. */
const shapes = {
  'get-8000': { test: 'get', command: ['GET', 'key'], keep: 0, clients: 8_000, requests: 100_000 },
  'ping-10000': { ...ping, keep: 0 },
  'ping-10000-kept': { ...ping, keep: 1 },
}

export type Shape = keyof typeof shapes
export const shapeNames = Object.keys(shapes) as Shape[]
export const isShape = (load: unknown): load is Shape => shapeNames.some((name) => name === load)

/** @param requests default: the number in the source articles. */
export function shapeOf(name: Shape, requests = shapes[name].requests) {
  const shape = shapes[name]
  const args = `-k ${shape.keep} -t ${shape.test} -n ${requests} -c ${shape.clients}`
  return { ...shape, requests, args }
}

/** If Redis's main thread is busy for a smaller share of the time, it does not limit the rate. */
const MIN_MAIN_DEMAND = 0.5

/** Runs redis-benchmark like the source articles, or our generator with the same load. */
export async function runShape(
  server: RedisServer,
  { args, keep, command, requests, clients }: ReturnType<typeof shapeOf>,
  tool: 'redis-benchmark' | 'our generator',
  load: Pick<LoadOptions, 'target' | 'signal'>,
): Promise<Measured> {
  const { result, cpu } = await cpuDuring(server, async () => {
    if (tool === 'redis-benchmark') {
      const words = `-p ${server.port} ${args}`.split(' ')
      const run = await redisBenchmark(words, load.signal)
      const { perSecond, p50, p99, max, command } = run
      return { values: { perSecond, p50, p99, max }, details: { command } }
    }
    const mode = keep ? 'long' : 'short'
    const end = { replies: requests }
    const run = await generateLoad({ ...load, mode, command, connections: clients, end })
    return {
      values: { perSecond: run.completed / run.seconds, ...run.latency },
      errors: run.errors,
    }
  })
  return {
    ...result,
    values: { ...result.values, ...microsPer(cpu, requests) },
    // A tool can limit the rate without being busy, if it often waits.
    doubts: cpu.mainDemand < MIN_MAIN_DEMAND ? ['rested'] : [],
  }
}
