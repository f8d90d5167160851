import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { latencyAt, type Percentile, shareOf, together } from '@onetrip/stack/measure/latencies.ts'
import { usageOf } from '../../measure/usage.ts'
import type { Doubt } from '../../rounds/shape.ts'
import type { PacedGenerator } from '../pacer/pacer.ts'
import type { Api } from './target.ts'

export const pacedDoubts: Readonly<Record<string, Doubt>> = {
  late: {
    mark: '*',
    text: 'The generator sent requests too late, although a connection was free. No ratio is computed from these rows. Lower rates or a machine with more cores may help.',
  },
  generator: {
    mark: '**',
    text: `The generator's thread was busy ${GENERATOR_LIMIT * 100} % of the time or more. No ratio is computed from these rows.`,
  },
}

/** The latency of requests that failed or were not sent. */
export const FAILED = Number.POSITIVE_INFINITY

/** Whether requests were sent so late that the generator may explain the latencies. In milliseconds. */
export const isLate = (late: number, p99: number | null) => late > 1 && late > 0.2 * (p99 ?? 0)

/**
 * Sends requests when they are due, and measures the resources that they use.
 *
 * @returns `percentile` counts requests that failed or were not sent as the slowest (`FAILED`), and returns null if
 *   fewer than ten requests are beyond the percentile. `late` is the 99th percentile of the time from when a request
 *   was due until it was sent, in milliseconds.
 * @throws Problem when the API accepts no connections or does not report its metrics; the reason of `signal`.
 */
export async function runPaced(
  generator: PacedGenerator,
  api: Api,
  { schedule, signal }: { schedule: Float64Array; signal: AbortSignal },
) {
  const { url, owned, monitor, foreign } = api
  const { result: run, cost } = await usageOf({ url, monitor, foreign, signal }, () =>
    generator.run({ url, owned, calls: api.calls(), schedule }),
  )
  const { due, ok, notSent } = run
  const latencies = together([run.latencies])
  const percentile = (name: Percentile) => latencyAt(latencies, shareOf(name), due)
  // Of requests for which a connection was free when they were due.
  const lateness = together([run.lateness])
  const late = lateness.totalCount === 0 ? 0 : lateness.getValueAtPercentile(99) / 1_000
  const errors: Record<string, number> = {
    ...(notSent > 0 && { 'not sent': notSent }),
    ...run.errors,
  }
  return {
    due,
    ok,
    errors,
    percentile,
    late,
    cost,
    latencies: run.latencies,
    max: ok > 0 ? latencies.maxValue / 1_000 : null,
    doubts: isLate(late, percentile('p99')) ? [...cost.doubts, 'late'] : cost.doubts,
  }
}
