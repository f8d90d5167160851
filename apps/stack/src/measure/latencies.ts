import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js'

// HDR histograms in microseconds: exact to three digits at any magnitude; histograms of several rounds can be
// added; the encoding is the same in all languages.

const HIGHEST_MICROS = 3_600_000_000

/** A histogram for latencies from 0.001 ms to an hour. Use `record` to add values. */
export const latencyHistogram = (): Histogram =>
  build({ lowestDiscernibleValue: 1, highestTrackableValue: HIGHEST_MICROS })

export function record(histogram: Histogram, milliseconds: number, count = 1): void {
  const micros = Math.round(milliseconds * 1_000)
  histogram.recordValueWithCount(Math.min(HIGHEST_MICROS, Math.max(1, micros)), count)
}

export const encoded = encodeIntoCompressedBase64

/** Decodes and adds histograms. */
export function together(histograms: readonly string[]): Histogram {
  const all = latencyHistogram()
  for (const histogram of histograms) all.add(decodeFromCompressedBase64(histogram))
  return all
}

/** The percentiles in results; `p999` is the 99.9th percentile. */
export const percentileNames = ['p50', 'p75', 'p90', 'p95', 'p99', 'p999', 'p9999'] as const
export type Percentile = (typeof percentileNames)[number]
/** The share (0 to 1) of a percentile: 0.999 for `p999`. */
export const shareOf = (name: Percentile) => Number(`0.${name.slice(1)}`)
/** Formats a percentile: `p99.9`. */
export const percentText = (name: Percentile) => `p${Number((shareOf(name) * 100).toFixed(2))}`

/** Percentiles and maximum in milliseconds; null if nothing was recorded. */
export function summaryOf(histogram: Histogram): Record<Percentile | 'max', number | null> {
  const milliseconds = (micros: number) => (histogram.totalCount === 0 ? null : micros / 1_000)
  const percentiles = percentileNames.map((name) => {
    const value = histogram.getValueAtPercentile(shareOf(name) * 100)
    // The value is the upper bound of a bucket; only the maximum is exact.
    return [name, milliseconds(Math.min(value, histogram.maxValue))]
  })
  return { ...Object.fromEntries(percentiles), max: milliseconds(histogram.maxValue) }
}

/** A percentile is shown only if at least this number of requests is beyond it. */
const MIN_BEYOND = 10

/**
 * The latency in milliseconds that a share (0 to 1) of the requests did not exceed. Requests that are not in the
 * histogram count as slower than all others. `Infinity` if the percentile is among those; null if fewer than ten
 * requests are beyond it.
 *
 * @param due number of all requests, including those that failed or were not sent.
 */
export function latencyAt(histogram: Histogram, share: number, due: number): number | null {
  // Subtracts a little, because with rounding errors, the ceiling of 0.99 * 1,000 could be 991.
  const rank = Math.max(1, Math.ceil(due * share - 1e-6))
  if (due > 0 && rank > histogram.totalCount) return Number.POSITIVE_INFINITY
  if (due - rank < MIN_BEYOND) return null
  return histogram.getValueAtPercentile(((rank - 0.5) / histogram.totalCount) * 100) / 1_000
}
