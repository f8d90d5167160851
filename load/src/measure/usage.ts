import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { type Usage, usageDuring } from '@onetrip/stack/measure/usage.ts'
import type { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { ELSEWHERE } from '../experiment/result.ts'
import type { Measured } from '../experiment/shape.ts'

interface Watched extends Pick<Parameters<typeof usageDuring>[0], 'url' | 'signal'> {
  /** Null for a service whose Redis and CPU time are unknown. */
  monitor: RedisMonitor | null
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
  { foreign, monitor, ...watched }: Watched,
  work: () => Promise<Result>,
): Promise<{ result: Result; cost: Cost }> {
  if (!monitor) {
    const result = await work()
    watched.signal.throwIfAborted()
    // The measured service may run on this machine, so its CPU time is no disturbance.
    const { values, doubts } = generatorCost(result)
    return {
      result,
      cost: { values: { ...values, [ELSEWHERE]: null }, foreignCpuSeconds: 0, doubts },
    }
  }
  const { result, usage } = await usageDuring({ ...watched, monitor }, work)
  const { sent } = result
  const own = generatorCost(result)
  const { apiCpuSeconds, redisCpuSeconds } = usage
  const cost = {
    values: {
      connections: usage.connections / sent,
      commands: usage.commands / sent,
      roundTrips: usage.roundTrips / sent,
      apiCpuMicros: (apiCpuSeconds * 1e6) / sent,
      redisCpuMicros: (redisCpuSeconds * 1e6) / sent,
      redisUserMicros: (usage.redisUserSeconds * 1e6) / sent,
      redisKernelMicros: (usage.redisKernelSeconds * 1e6) / sent,
      redisBytesIn: usage.redisBytesIn / sent,
      redisBytesOut: usage.redisBytesOut / sent,
      ...own.values,
    },
    foreignCpuSeconds: (foreign.apis ? apiCpuSeconds : 0) + (foreign.redis ? redisCpuSeconds : 0),
    details: { commandStats: perRequest(usage.commandStats, sent) },
    doubts: own.doubts,
  }
  return { result, cost }
}

const generatorCost = ({ sent, generator: { cpuSeconds, utilization } }: Sent) => ({
  values: { generatorCpuMicros: (cpuSeconds * 1e6) / sent, generatorBusy: utilization },
  doubts: utilization >= GENERATOR_LIMIT ? ['generator'] : [],
})

/** Calls and execution time (microseconds) of each command, per request. */
const perRequest = (stats: Usage['commandStats'], sent: number) =>
  Object.fromEntries(
    [...stats].map(([name, { calls, micros }]) => [
      name,
      { calls: calls / sent, micros: micros / sent },
    ]),
  )
