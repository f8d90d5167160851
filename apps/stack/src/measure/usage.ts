import { request } from 'undici'
import { type Metric, parseMetrics } from '../metrics.ts'
import { messageOf, Problem } from '../problem.ts'
import type { Monitor } from '../redis-monitors.ts'
import { until } from '../until.ts'

async function fetchMetrics(url: string): Promise<Metric[]> {
  try {
    const options = { reset: true, headersTimeout: 10_000 }
    const { statusCode, body } = await request(`${url}/metrics`, options)
    const text = await body.text()
    if (statusCode === 200) return parseMetrics(text)
    throw new Error(`status ${statusCode}`)
  } catch (cause) {
    const why = messageOf(cause)
    throw new Problem(`The API at ${url} does not report its metrics: ${why}`, { cause })
  }
}

/** Counters of an API since its start. @throws Problem if the API does not answer. */
export async function readApi(url: string) {
  const metrics = await fetchMetrics(url)
  // The sum over all labels; 0 if the metric does not exist.
  const total = (metric: string) =>
    metrics.reduce((sum, { name, value }) => (name === metric ? sum + value : sum), 0)
  return {
    cpuSeconds: total('process_cpu_seconds_total'),
    roundTrips: total('onetrip_store_round_trips_total'),
    commands: total('onetrip_store_commands_total'),
    connections: total('onetrip_store_connections_opened_total'),
  }
}

/** The metric `onetrip_info` of an API. */
export interface ApiInfo {
  strategy: string
  /** Connections to Redis; null if unknown. */
  poolSize: number | null
}

/** @throws Problem if there is no answer, or if the server is not an API of Onetrip. */
export async function infoOf(url: string): Promise<ApiInfo> {
  const info = (await fetchMetrics(url)).find(({ name }) => name === 'onetrip_info')
  if (!info) throw new Problem(`The server at ${url} is not an API of Onetrip.`)
  const { strategy = 'unknown', pool_size: poolSize } = info.labels
  return { strategy, poolSize: Number(poolSize) || null }
}

interface Watched {
  /** URL of the API. */
  url: string
  monitor: Pick<Monitor, 'read'>
  signal: AbortSignal
}

/** Resources that an API and its Redis used during a run. */
export interface Usage {
  /** Connections that Redis accepted, from all clients. */
  connections: number
  /** Connections that the API opened. */
  connectionsOpened: number
  /** Commands that Redis executed, of all clients. */
  commands: number
  /** Round trips to Redis, as counted by the API: without greetings and QUIT. */
  roundTrips: number
  apiCpuSeconds: number
  redisCpuSeconds: number
  redisMainCpuSeconds: number
}

/**
 * Reads the counters of an API and its Redis before and after `work`, which sends requests to the API.
 *
 * @throws Problem if the API or Redis does not answer; errors of `work`; the reason of `signal`.
 */
export async function usageDuring<Result>(
  { url, monitor, signal }: Watched,
  work: () => Promise<Result>,
): Promise<{ result: Result; usage: Usage }> {
  const [redisBefore, apiBefore] = await Promise.all([monitor.read(), readApi(url)])
  const result = await work()
  signal.throwIfAborted()
  // Waits until Redis executes no more commands: requests that were in flight belong to the run.
  let redis = redisBefore
  const isIdle = async () => {
    const { commands } = redis
    redis = await monitor.read()
    return redis.commands === commands
  }
  await until(isIdle, { timeoutMs: 2_000 })
  const api = await readApi(url)
  const usage = {
    connections: redis.connections - redisBefore.connections,
    commands: redis.commands - redisBefore.commands,
    connectionsOpened: api.connections - apiBefore.connections,
    roundTrips: api.roundTrips - apiBefore.roundTrips,
    apiCpuSeconds: api.cpuSeconds - apiBefore.cpuSeconds,
    redisCpuSeconds: redis.cpuSeconds - redisBefore.cpuSeconds,
    redisMainCpuSeconds: redis.mainCpuSeconds - redisBefore.mainCpuSeconds,
  }
  return { result, usage }
}
