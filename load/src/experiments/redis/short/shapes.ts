import { cpuDuring, measureBenchmark, measureLoad } from '../../../drivers/redis/cost.ts'
import type { LoadOptions } from '../../../drivers/redis/generator/load.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import type { Case, Measured } from '../../../experiment/shape.ts'
import { articleShapes } from '../settings.ts'

const ping = { test: 'ping_mbulk', command: ['PING'], clients: 10_000, requests: 500_000 }

/** The calls of redis-benchmark in the articles. `test` and `keep` are its options -t and -k. */
const loads = {
  'get-8000': { test: 'get', command: ['GET', 'key'], keep: 0, clients: 8_000, requests: 100_000 },
  'ping-10000': { ...ping, keep: 0 },
  'ping-10000-kept': { ...ping, keep: 1 },
}

type ArticleShape = keyof typeof loads
export const isArticleShape = (load: unknown): load is ArticleShape =>
  articleShapes.some((name) => name === load)

export const tools = ['redis-benchmark', 'our generator'] as const

/** @param requests default: the number in the articles. */
export function shapeOf(name: ArticleShape, requests = loads[name].requests) {
  const { keep, test, clients } = loads[name]
  const args = `-k ${keep} -t ${test} -n ${requests} -c ${clients}`
  return { ...loads[name], requests, args }
}

/** If Redis's main thread is busy for a smaller share of the time, it does not limit the rate. */
const MIN_MAIN_DEMAND = 0.5

/** Runs redis-benchmark like the articles, or our generator with the same load. */
export async function runShape(
  server: RedisServer,
  { load, tool }: Case,
  wanted: number | undefined,
  { target, signal }: LoadOptions,
): Promise<Measured> {
  const { args, keep, command, requests, clients } = shapeOf(load as ArticleShape, wanted)
  const mode = keep ? 'long' : 'short'
  const end = { replies: requests }
  const { result, cpu } = await cpuDuring<Measured>(server, () =>
    tool === tools[0]
      ? measureBenchmark(server, args, requests, signal)
      : measureLoad(server, { target, signal, mode, command, connections: clients, end }),
  )
  // A tool can limit the rate without being busy, if it often waits.
  return { ...result, doubts: cpu.mainDemand < MIN_MAIN_DEMAND ? ['rested'] : [] }
}
