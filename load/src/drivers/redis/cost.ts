import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import type { Doubt } from '../../rounds/shape.ts'
import { generateLoad, type LoadOptions } from './generator/load.ts'
import { redisBenchmark } from './redis-benchmark.ts'
import type { RedisServer } from './server.ts'
import { type CpuUse, cpuBetween } from './threads.ts'

/** Runs `work` and measures the CPU time of a Redis server during it. */
export async function cpuDuring<Result>(
  server: Pick<RedisServer, 'cpu'>,
  work: () => Promise<Result>,
): Promise<{ result: Result; cpu: CpuUse }> {
  const before = await server.cpu()
  const result = await work()
  return { result, cpu: cpuBetween(before, await server.cpu()) }
}

/** CPU time per command, connection or value, in microseconds. */
export const microsPer = ({ mainCpuSeconds, cpuSeconds }: CpuUse, count: number) => ({
  mainCpuMicros: (mainCpuSeconds * 1e6) / count,
  cpuMicros: (cpuSeconds * 1e6) / count,
})

/** Runs redis-benchmark with these options. The values are its figures, and Redis's CPU time per request. */
export async function measureBenchmark(
  server: RedisServer,
  options: string,
  requests: number,
  signal: AbortSignal,
) {
  const args = `-p ${server.port} ${options}`.split(' ')
  const { result, cpu } = await cpuDuring(server, () => redisBenchmark(args, signal))
  const { perSecond, p50, p99, max, command } = result
  return {
    values: { perSecond, p50, p99, max, ...microsPer(cpu, requests) },
    details: { command },
  }
}

/** Runs the generator. The values are latencies in milliseconds, and Redis's CPU time per reply in microseconds. */
export async function measureLoad(server: RedisServer, options: LoadOptions) {
  const { result: load, cpu } = await cpuDuring(server, () => generateLoad(options))
  const isLimit = load.demand >= GENERATOR_LIMIT && cpu.mainDemand < GENERATOR_LIMIT
  return {
    values: {
      perSecond: load.completed / load.seconds,
      ...load.latency,
      ...microsPer(cpu, load.completed),
    },
    errors: load.errors,
    doubts: isLimit ? ['generator'] : [],
  }
}

/** The doubt `generator` of `measureLoad`. */
export const limitedByGenerator: Doubt = {
  mark: '*',
  text: 'The generator was busy all the time, Redis was not, so the generator limits the rate.',
}
