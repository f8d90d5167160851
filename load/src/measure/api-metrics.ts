import { type Metric, parseMetrics } from '@onetrip/stack/metrics.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { request } from 'undici'

/** Counters of an API process since its start. */
export interface ApiReading {
  cpuSeconds: number
  residentBytes: number
  roundTrips: number
  commands: number
  /** Connections that it opened to Redis. */
  connections: number
}

export interface ApiFacts {
  strategy: string
  transport: string
}

/** The sum of a metric over its labels; 0 when it was never counted. */
function total(metrics: readonly Metric[], name: string): number {
  return metrics.filter((metric) => metric.name === name).reduce((sum, { value }) => sum + value, 0)
}

async function fetchMetrics(url: string): Promise<Metric[]> {
  try {
    const { statusCode, body } = await request(`${url}/metrics`, {
      reset: true,
      headersTimeout: 10_000,
    })
    const text = await body.text()
    if (statusCode === 200) return parseMetrics(text)
    throw new Error(`it answered ${statusCode}`)
  } catch (error) {
    const why = messageOf(error)
    throw new Problem(`The API at ${url} does not tell its metrics: ${why}`, { cause: error })
  }
}

/** @throws Problem when the API does not answer. */
export async function readApi(url: string): Promise<ApiReading> {
  const metrics = await fetchMetrics(url)
  return {
    cpuSeconds: total(metrics, 'process_cpu_seconds_total'),
    residentBytes: total(metrics, 'process_resident_memory_bytes'),
    roundTrips: total(metrics, 'onetrip_store_round_trips_total'),
    commands: total(metrics, 'onetrip_store_commands_total'),
    connections: total(metrics, 'onetrip_store_connections_opened_total'),
  }
}

/**
 * What an API says that it is.
 *
 * @throws Problem when it does not answer, or is no API of ours.
 */
export async function apiFacts(url: string): Promise<ApiFacts> {
  const info = (await fetchMetrics(url)).find(({ name }) => name === 'onetrip_info')
  if (!info) throw new Problem(`What answers at ${url} is no Onetrip API.`)
  return {
    strategy: info.labels.strategy ?? 'unknown',
    transport: info.labels.transport ?? 'unknown',
  }
}
