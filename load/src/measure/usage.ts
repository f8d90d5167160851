import type { CommandStats } from '@onetrip/session-store'
import { type Metric, parseMetrics } from '@onetrip/stack/metrics.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import type { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { until } from '@onetrip/stack/until.ts'
import { request } from 'undici'
import { GENERATOR_LIMIT } from '../drivers/generator-limit.ts'

async function fetchMetrics(url: string): Promise<Metric[]> {
  try {
    const options = { reset: true, headersTimeout: 10_000 }
    const { statusCode, body } = await request(`${url}/metrics`, options)
    const text = await body.text()
    if (statusCode === 200) return parseMetrics(text)
    throw new Error(`it answered ${statusCode}`)
  } catch (cause) {
    const why = messageOf(cause)
    throw new Problem(`The API at ${url} does not report its metrics: ${why}`, { cause })
  }
}

/** Counters of an API since its start. @throws Problem when it does not answer. */
export async function readApi(url: string) {
  const metrics = await fetchMetrics(url)
  // Summed over its labels; 0 when it was never counted.
  const total = (metric: string) =>
    metrics.reduce((sum, { name, value }) => (name === metric ? sum + value : sum), 0)
  return {
    cpuSeconds: total('process_cpu_seconds_total'),
    roundTrips: total('onetrip_store_round_trips_total'),
    commands: total('onetrip_store_commands_total'),
  }
}

/** The strategy that an API says it has. @throws Problem when it does not answer, or is no API of ours. */
export async function strategyOf(url: string): Promise<string> {
  const info = (await fetchMetrics(url)).find(({ name }) => name === 'onetrip_info')
  if (!info) throw new Problem(`What answers at ${url} is not an API of Onetrip.`)
  return info.labels.strategy ?? 'unknown'
}

interface Watched {
  /** Of the API. */
  url: string
  monitor: RedisMonitor
  /** Which of the programs this process did not start. */
  foreign: { readonly apis: boolean; readonly redis: boolean }
  signal: AbortSignal
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
 * @throws Problem when the API or Redis do not report; what `work` throws; the reason of `signal`.
 */
export async function usageOf<Result extends Sent>(
  { url, monitor, foreign, signal }: Watched,
  work: () => Promise<Result>,
) {
  const [redisBefore, apiBefore] = await Promise.all([monitor.read(), readApi(url)])
  const result = await work()
  signal.throwIfAborted()
  // The API goes on with the requests that were in flight, and they belong to the run.
  let redis = redisBefore
  const standsStill = async () => {
    const { commands } = redis
    redis = await monitor.read()
    return redis.commands === commands
  }
  await until(standsStill, { timeoutMs: 2_000 })
  const api = await readApi(url)
  const { sent, generator } = result
  const apiCpuSeconds = api.cpuSeconds - apiBefore.cpuSeconds
  const redisCpuSeconds = redis.cpuSeconds - redisBefore.cpuSeconds
  const perRequest = (
    of: 'userCpuSeconds' | 'kernelCpuSeconds' | 'netInputBytes' | 'netOutputBytes',
  ) => (redis[of] - redisBefore[of]) / sent
  const cost = {
    values: {
      connections: (redis.connections - redisBefore.connections) / sent,
      commands: (redis.commands - redisBefore.commands) / sent,
      roundTrips: (api.roundTrips - apiBefore.roundTrips) / sent,
      generatorCpuMicros: (generator.cpuSeconds * 1e6) / sent,
      apiCpuMicros: (apiCpuSeconds * 1e6) / sent,
      redisCpuMicros: (redisCpuSeconds * 1e6) / sent,
      redisUserMicros: perRequest('userCpuSeconds') * 1e6,
      redisKernelMicros: perRequest('kernelCpuSeconds') * 1e6,
      redisBytesIn: perRequest('netInputBytes'),
      redisBytesOut: perRequest('netOutputBytes'),
      generatorBusy: generator.utilization,
    },
    foreignCpuSeconds: (foreign.apis ? apiCpuSeconds : 0) + (foreign.redis ? redisCpuSeconds : 0),
    details: { commandStats: statsPerRequest(redisBefore.commandStats, redis.commandStats, sent) },
    doubts: generator.utilization >= GENERATOR_LIMIT ? ['generator'] : [],
  }
  return { result, cost }
}

type AllStats = ReadonlyMap<string, CommandStats>

/** Calls of each command, and microseconds of its execution, per request. */
function statsPerRequest(before: AllStats, after: AllStats, sent: number) {
  const changes = [...after].map(([name, { calls, micros }]) => {
    const then = before.get(name) ?? { calls: 0, micros: 0 }
    return [
      name,
      { calls: (calls - then.calls) / sent, micros: (micros - then.micros) / sent },
    ] as const
  })
  return Object.fromEntries(changes.filter(([, { calls }]) => calls > 0))
}
