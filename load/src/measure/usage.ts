import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { usageDuring } from '@onetrip/stack/measure/usage.ts'
import type { Measured } from '../rounds/shape.ts'

type Watched = Parameters<typeof usageDuring>[0] & {
  /** Whether these programs were started by another process. */
  foreign: { readonly apis: boolean; readonly redis: boolean }
}

/** The report of a generator. */
interface Sent {
  /** Requests that may have reached the API. */
  sent: number
  /** `utilization`: the share of the time in which its event loop was busy, 0 to 1. */
  generator: { cpuSeconds: number; utilization: number }
}

type Cost = Measured & Required<Pick<Measured, 'foreignCpuSeconds' | 'doubts'>>

/**
 * Runs a generator and measures the resources that its requests use.
 *
 * @param work runs the generator.
 * @returns its result, and the cost per request.
 * @throws as `usageDuring`.
 */
export async function usageOf<Result extends Sent>(
  { foreign, ...watched }: Watched,
  work: () => Promise<Result>,
): Promise<{ result: Result; cost: Cost }> {
  const { result, usage } = await usageDuring(watched, work)
  const { sent, generator } = result
  const { cpuSeconds, utilization } = generator
  const { apiCpuSeconds, redisCpuSeconds } = usage
  const cost = {
    values: {
      connections: usage.connections / sent,
      commands: usage.commands / sent,
      roundTrips: usage.roundTrips / sent,
      apiCpuMicros: (apiCpuSeconds * 1e6) / sent,
      redisCpuMicros: (redisCpuSeconds * 1e6) / sent,
      redisMainCpuMicros: (usage.redisMainCpuSeconds * 1e6) / sent,
      generatorCpuMicros: (cpuSeconds * 1e6) / sent,
      generatorBusy: utilization,
    },
    foreignCpuSeconds: (foreign.apis ? apiCpuSeconds : 0) + (foreign.redis ? redisCpuSeconds : 0),
    doubts: utilization >= GENERATOR_LIMIT ? ['generator'] : [],
  }
  return { result, cost }
}
