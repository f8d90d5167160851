import { createHistogram, type Histogram, type RecordableHistogram } from 'node:perf_hooks'
import type { Extremes, Percentiles } from '../../latency/result.ts'

// Node's histogram is an HDR histogram: three digits are exact at any size, it can be sent to another
// thread and added to another one. It needs no correction for coordinated omission, as every request
// is in it with its due time.

const HIGHEST_MICROS = 3_600_000_000

/** For milliseconds from 0.001 to an hour, recorded with `record`. */
export function latencyHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: HIGHEST_MICROS, figures: 3 })
}

export function record(histogram: RecordableHistogram, milliseconds: number): void {
  const micros = Math.round(milliseconds * 1_000)
  histogram.record(Math.min(HIGHEST_MICROS, Math.max(1, micros)))
}

/** Which of so many requests, by their latency from 1 on, is at this share of them. */
function rankOf(share: number, due: number): number {
  // Without the small part, rounding errors would make 991 of 0.99 * 1,000 one day.
  return Math.max(1, Math.ceil(due * share - 1e-6))
}

/** How many requests have to be beyond a percentile for it to be told. */
const FEWEST_BEYOND = 10

/**
 * The latency in milliseconds that so many of the requests did not exceed, when those that are not in
 * the histogram are slower than all others. Null when it is among those, or too few are beyond it.
 *
 * @param share 0 to 1.
 * @param due all requests, those that failed or were not sent included.
 */
function latencyAt(histogram: Histogram, share: number, due: number): number | null {
  const rank = rankOf(share, due)
  if (due - rank < FEWEST_BEYOND || rank > histogram.count) return null
  return histogram.percentile((rank / histogram.count) * 100) / 1_000
}

const percentileShares = {
  p50: 0.5,
  p75: 0.75,
  p90: 0.9,
  p99: 0.99,
  p999: 0.999,
  p9999: 0.9999,
} as const satisfies Record<keyof Percentiles, number>

export const percentileNames = Object.keys(percentileShares) as (keyof Percentiles)[]

export function figuresOf(histogram: Histogram, due: number): Percentiles & Extremes {
  const at = (name: keyof Percentiles) => latencyAt(histogram, percentileShares[name], due)
  const any = histogram.count > 0
  return {
    p50: at('p50'),
    p75: at('p75'),
    p90: at('p90'),
    p99: at('p99'),
    p999: at('p999'),
    p9999: at('p9999'),
    max: any ? histogram.max / 1_000 : null,
    mean: any ? histogram.mean / 1_000 : null,
  }
}

/** Whether so many requests failed, or were not sent, that a percentile is one of them. */
export function isAmongFailed(
  { due, ok, latency }: { due: number; ok: number; latency: Percentiles },
  name: keyof Percentiles,
): boolean {
  return latency[name] === null && rankOf(percentileShares[name], due) > ok
}

/** Points of a curve in each tenth part: from 90 to 99 %, from 99 to 99.9 %, and so on. */
const POINTS = 10

/** Latencies at shares that are ever closer to 1, as far as percentiles are told. */
export function curveOf(histogram: Histogram, due: number): { share: number; ms: number }[] {
  const curve: { share: number; ms: number }[] = []
  for (let step = 0; ; step++) {
    const share = 1 - 10 ** (-step / POINTS)
    const ms = latencyAt(histogram, share, due)
    if (ms === null) return curve
    curve.push({ share, ms })
  }
}
