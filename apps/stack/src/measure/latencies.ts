import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js'

// HDR histograms in microseconds: three digits are exact at any size, those of several rounds can be added
// up, and their encoding is the same in all languages.

const HIGHEST_MICROS = 3_600_000_000

/** For milliseconds from 0.001 to an hour, recorded with `record`. */
export const latencyHistogram = (): Histogram =>
  build({ lowestDiscernibleValue: 1, highestTrackableValue: HIGHEST_MICROS })

export function record(histogram: Histogram, milliseconds: number, count = 1): void {
  const micros = Math.round(milliseconds * 1_000)
  histogram.recordValueWithCount(Math.min(HIGHEST_MICROS, Math.max(1, micros)), count)
}

export const encoded = encodeIntoCompressedBase64

/** Encoded histograms as one. */
export function together(histograms: readonly string[]): Histogram {
  const all = latencyHistogram()
  for (const histogram of histograms) all.add(decodeFromCompressedBase64(histogram))
  return all
}

/** The percentiles that are kept: `p999` is that of 99.9 %. */
export const percentileNames = ['p50', 'p75', 'p90', 'p95', 'p99', 'p999', 'p9999'] as const
export type Percentile = (typeof percentileNames)[number]
/** 0 to 1: 0.999 for `p999`. */
export const shareOf = (name: Percentile) => Number(`0.${name.slice(1)}`)
/** `p99.9` */
export const percentText = (name: Percentile) => `p${Number((shareOf(name) * 100).toFixed(2))}`

/** Percentiles and `max`, the longest, in milliseconds; null where nothing was recorded. */
export function summaryOf(histogram: Histogram): Record<Percentile | 'max', number | null> {
  const milliseconds = (micros: number) => (histogram.totalCount === 0 ? null : micros / 1_000)
  const percentiles = percentileNames.map((name) => {
    const value = histogram.getValueAtPercentile(shareOf(name) * 100)
    // It is the upper end of a step of the histogram; the longest is kept exactly.
    return [name, milliseconds(Math.min(value, histogram.maxValue))]
  })
  return { ...Object.fromEntries(percentiles), max: milliseconds(histogram.maxValue) }
}

/** How many requests must be beyond a percentile for it to be shown. */
const FEWEST_BEYOND = 10

/**
 * The latency in milliseconds that a share of the requests (0 to 1) did not exceed, when those that are not
 * in the histogram are slower than all others: `Infinity` when it is among those, null when fewer than ten
 * requests are beyond it.
 *
 * @param due all requests, those that failed or were not sent included.
 */
export function latencyAt(histogram: Histogram, share: number, due: number): number | null {
  // Without the small part, a rounding error could make 991 of 0.99 * 1,000.
  const rank = Math.max(1, Math.ceil(due * share - 1e-6))
  if (due > 0 && rank > histogram.totalCount) return Number.POSITIVE_INFINITY
  if (due - rank < FEWEST_BEYOND) return null
  return histogram.getValueAtPercentile(((rank - 0.5) / histogram.totalCount) * 100) / 1_000
}

/**
 * Latencies in milliseconds at shares that are ever closer to 1, as far as percentiles are shown: ten from 90
 * to 99 %, ten from 99 to 99.9 %, and so on.
 */
export function curveOf(histogram: Histogram, due: number): (readonly [number, number])[] {
  const curve: (readonly [share: number, ms: number])[] = []
  for (let step = 0; ; step++) {
    const share = 1 - 10 ** (-step / 10)
    const ms = latencyAt(histogram, share, due)
    if (ms === null || ms === Number.POSITIVE_INFINITY) return curve
    curve.push([share, ms])
  }
}
