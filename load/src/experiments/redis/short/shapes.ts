import { cpuDuring, measureBenchmark, measureLoad } from '../../../drivers/redis/cost.ts'
import type { LoadOptions } from '../../../drivers/redis/generator/load.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import type { Case, Measured } from '../../../rounds/shape.ts'
import { articleShapes } from '../settings.ts'

/** The calls of redis-benchmark in the articles, with its option -k 0. `test` is its option -t. */
const loads = {
  'get-8000': { test: 'get', command: ['GET', 'key'], clients: 8_000, requests: 100_000 },
}

type ArticleShape = keyof typeof loads
export const isArticleShape = (load: unknown): load is ArticleShape =>
  articleShapes.some((name) => name === load)

export const tools = ['redis-benchmark', 'our generator'] as const

/** @param requests default: the number in the articles. */
export function shapeOf(name: ArticleShape, requests = loads[name].requests) {
  const { test, clients } = loads[name]
  const args = `-k 0 -t ${test} -n ${requests} -c ${clients}`
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
  const { args, command, requests, clients } = shapeOf(load as ArticleShape, wanted)
  const end = { replies: requests }
  const { result, cpu } = await cpuDuring<Measured>(server, () =>
    tool === tools[0]
      ? measureBenchmark(server, args, requests, signal)
      : measureLoad(server, { target, signal, mode: 'short', command, connections: clients, end }),
  )
  // A tool can limit the rate without being busy, if it often waits.
  return { ...result, doubts: cpu.mainDemand < MIN_MAIN_DEMAND ? ['rested'] : [] }
}
