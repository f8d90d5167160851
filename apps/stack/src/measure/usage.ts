import type { CommandStats } from '@onetrip/session-store'
import { request } from 'undici'
import { type Metric, parseMetrics } from '../metrics.ts'
import { messageOf, Problem } from '../problem.ts'
import { commandsBetween, type RedisMonitor } from '../redis-info.ts'
import { until } from '../until.ts'

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
    connections: total('onetrip_store_connections_opened_total'),
  }
}

/** What an API says that it is. */
export interface ApiInfo {
  strategy: string
  /** Processes, and connections to Redis of each; null where it does not say. */
  workers: number | null
  poolSize: number | null
}

/** @throws Problem when it does not answer, or is no API of ours. */
export async function infoOf(url: string): Promise<ApiInfo> {
  const info = (await fetchMetrics(url)).find(({ name }) => name === 'onetrip_info')
  if (!info) throw new Problem(`What answers at ${url} is not an API of Onetrip.`)
  const { strategy = 'unknown', workers, pool_size: poolSize } = info.labels
  return { strategy, workers: Number(workers) || null, poolSize: Number(poolSize) || null }
}

interface Watched {
  /** Of the API. */
  url: string
  monitor: Pick<RedisMonitor, 'read'>
  signal: AbortSignal
}

/** What an API and its Redis used meanwhile. */
export interface Usage {
  /** Connections that Redis accepted, of whomever. */
  connections: number
  /** Connections that the API opened. */
  connectionsOpened: number
  /** Commands that Redis executed, of whomever. */
  commands: number
  /** Round trips to Redis, as the API counts them: without greetings and QUIT. */
  roundTrips: number
  apiCpuSeconds: number
  redisCpuSeconds: number
  /** The parts of it in the program and in the kernel. */
  redisUserSeconds: number
  redisKernelSeconds: number
  /** Bytes that Redis received and sent. */
  redisBytesIn: number
  redisBytesOut: number
  /** Commands that were called, by name. */
  commandStats: ReadonlyMap<string, CommandStats>
}

/**
 * Reads the counters of an API and its Redis before and after some work, which sends requests to the API.
 *
 * @throws Problem when the API or Redis do not report; what `work` throws; the reason of `signal`.
 */
export async function usageDuring<Result>(
  { url, monitor, signal }: Watched,
  work: () => Promise<Result>,
): Promise<{ result: Result; usage: Usage }> {
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
  const usage = {
    connections: redis.connections - redisBefore.connections,
    commands: redis.commands - redisBefore.commands,
    connectionsOpened: api.connections - apiBefore.connections,
    roundTrips: api.roundTrips - apiBefore.roundTrips,
    apiCpuSeconds: api.cpuSeconds - apiBefore.cpuSeconds,
    redisCpuSeconds: redis.cpuSeconds - redisBefore.cpuSeconds,
    redisUserSeconds: redis.userCpuSeconds - redisBefore.userCpuSeconds,
    redisKernelSeconds: redis.kernelCpuSeconds - redisBefore.kernelCpuSeconds,
    redisBytesIn: redis.netInputBytes - redisBefore.netInputBytes,
    redisBytesOut: redis.netOutputBytes - redisBefore.netOutputBytes,
    commandStats: commandsBetween(redisBefore.commandStats, redis.commandStats),
  }
  return { result, usage }
}
