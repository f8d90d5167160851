import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { usageDuring } from '@onetrip/stack/measure/usage.ts'

interface Watched extends Pick<Parameters<typeof usageDuring>[0], 'url' | 'monitor' | 'signal'> {
  /** Which of the programs this process did not start. */
  foreign: { readonly apis: boolean; readonly redis: boolean }
}

/** What a generator reports: requests that may have reached the API; CPU seconds, and share of the time busy. */
interface Sent {
  sent: number
  generator: { cpuSeconds: number; utilization: number }
}

/**
 * Has a generator send requests to an API, and reads before and after what that took.
 *
 * @returns its result; `cost` is a part of `Measured`, whose values are per request.
 * @throws as `usageDuring`.
 */
export async function usageOf<Result extends Sent>(
  { foreign, ...watched }: Watched,
  work: () => Promise<Result>,
) {
  const { result, usage } = await usageDuring(watched, work)
  const { sent, generator } = result
  const { apiCpuSeconds, redisCpuSeconds } = usage
  const cost = {
    values: {
      connections: usage.connections / sent,
      commands: usage.commands / sent,
      roundTrips: usage.roundTrips / sent,
      generatorCpuMicros: (generator.cpuSeconds * 1e6) / sent,
      apiCpuMicros: (apiCpuSeconds * 1e6) / sent,
      redisCpuMicros: (redisCpuSeconds * 1e6) / sent,
      generatorBusy: generator.utilization,
    },
    foreignCpuSeconds: (foreign.apis ? apiCpuSeconds : 0) + (foreign.redis ? redisCpuSeconds : 0),
    doubts: generator.utilization >= GENERATOR_LIMIT ? ['generator'] : [],
  }
  return { result, cost }
}
