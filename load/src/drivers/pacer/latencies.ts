import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js'

// HDR histograms in microseconds: three digits are exact at any size, those of several rounds can be added
// up, and their encoding is the same in all languages. They need no correction for coordinated omission, as
// every request is in them with its due time.

const HIGHEST_MICROS = 3_600_000_000

/** For milliseconds from 0.001 to an hour, recorded with `record`. */
export function latencyHistogram(): Histogram {
  return build({ lowestDiscernibleValue: 1, highestTrackableValue: HIGHEST_MICROS })
}

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

/** The percentiles that are kept, as shares of the requests. */
export const percentileShares = {
  p50: 0.5,
  p75: 0.75,
  p90: 0.9,
  p95: 0.95,
  p99: 0.99,
  p999: 0.999,
  p9999: 0.9999,
} as const

export type Percentile = keyof typeof percentileShares
export const percentileNames = Object.keys(percentileShares) as Percentile[]
/** `p99.9` */
export const percentText = (name: Percentile) =>
  `p${Number((percentileShares[name] * 100).toFixed(2))}`

export type LatencySummary = Record<Percentile | 'max', number | null>

/** Percentiles and the longest, in milliseconds; null where nothing was recorded. */
export function summaryOf(histogram: Histogram): LatencySummary {
  const milliseconds = (micros: number) => (histogram.totalCount === 0 ? null : micros / 1_000)
  const percentiles = percentileNames.map((name) => {
    const value = histogram.getValueAtPercentile(percentileShares[name] * 100)
    // It is the upper end of a step of the histogram; the longest is kept exactly.
    return [name, milliseconds(Math.min(value, histogram.maxValue))]
  })
  return { ...Object.fromEntries(percentiles), max: milliseconds(histogram.maxValue) }
}

/** How many requests must be beyond a percentile for it to be shown. */
const FEWEST_BEYOND = 10

/**
 * The latency in milliseconds that a share of the requests did not exceed, when those that are not in the
 * histogram are slower than all others: `Infinity` when it is among those, null when fewer than ten requests
 * are beyond it.
 *
 * @param share 0 to 1.
 * @param due all requests, those that failed or were not sent included.
 */
export function latencyAt(histogram: Histogram, share: number, due: number): number | null {
  // Without the small part, a rounding error could make 991 of 0.99 * 1,000.
  const rank = Math.max(1, Math.ceil(due * share - 1e-6))
  if (due > 0 && rank > histogram.totalCount) return Number.POSITIVE_INFINITY
  if (due - rank < FEWEST_BEYOND) return null
  return histogram.getValueAtPercentile(((rank - 0.5) / histogram.totalCount) * 100) / 1_000
}

/** Points of a curve in each tenth part: from 90 to 99 %, from 99 to 99.9 %, and so on. */
const POINTS = 10

/** Latencies in milliseconds at shares that are ever closer to 1, as far as percentiles are shown. */
export function curveOf(
  histogram: Histogram,
  due: number,
): (readonly [share: number, ms: number])[] {
  const curve: (readonly [number, number])[] = []
  for (let step = 0; ; step++) {
    const share = 1 - 10 ** (-step / POINTS)
    const ms = latencyAt(histogram, share, due)
    if (ms === null || ms === Number.POSITIVE_INFINITY) return curve
    curve.push([share, ms])
  }
}
