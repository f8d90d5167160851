import { type Metric, parseMetrics } from '@onetrip/stack/metrics.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { request } from 'undici'

/** Counters of an API since its start. */
interface ApiReading {
  cpuSeconds: number
  roundTrips: number
  commands: number
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
    throw new Problem(`The API at ${url} does not report its metrics: ${why}`, { cause: error })
  }
}

/** @throws Problem when the API does not answer. */
export async function readApi(url: string): Promise<ApiReading> {
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

/**
 * The strategy that an API says it has.
 *
 * @throws Problem when it does not answer, or is no API of ours.
 */
export async function strategyOf(url: string): Promise<string> {
  const info = (await fetchMetrics(url)).find(({ name }) => name === 'onetrip_info')
  if (!info) throw new Problem(`What answers at ${url} is not an API of Onetrip.`)
  return info.labels.strategy ?? 'unknown'
}
