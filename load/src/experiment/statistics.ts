import jstat from 'jstat'
import { max, mean, median, min, sampleVariance } from 'simple-statistics'

/** Middle value and range of some samples, in the samples' own unit. */
export interface Summary {
  median: number
  min: number
  max: number
}

interface Interval {
  low: number
  high: number
}

/** How many times as much as something else, over the rounds. */
export interface Ratio extends Summary {
  /** The geometric mean, so that turning the ratio round turns its mean round. */
  mean: number
  /** In which the mean is with a confidence of 95 %; null with fewer than two rounds. */
  interval: Interval | null
}

/** How many times as much as before. */
export interface Change {
  mean: number
  interval: Interval
}

const RATIO_CONFIDENCE = 0.95

/** @throws RangeError when there are no values. */
export function summarize(values: readonly number[]): Summary {
  if (values.length === 0) throw new RangeError('no samples')
  const list = [...values]
  return { median: median(list), min: min(list), max: max(list) }
}

/**
 * Sums up ratios of the rounds. The interval is that of Student's t over their logarithms
 * (docs/statistics.md says why).
 *
 * @throws RangeError when there are none, or one of them is not positive.
 */
export function summarizeRatios(ratios: readonly number[]): Ratio {
  const logarithms = logarithmsOf(ratios)
  const middle = mean(logarithms)
  const freedom = ratios.length - 1
  const interval =
    freedom > 0
      ? intervalAround(
          middle,
          sampleVariance(logarithms) / ratios.length,
          freedom,
          RATIO_CONFIDENCE,
        )
      : null
  return { ...summarize(ratios), mean: Math.exp(middle), interval }
}

/**
 * How many times `before` the values of `after` are, of two runs that have nothing in common: Welch's
 * interval over the logarithms.
 *
 * @param confidence of the interval, 0.99 for 99 %.
 * @throws RangeError when one of them has fewer than two values, or a value is not positive.
 */
export function changeBetween(
  before: readonly number[],
  after: readonly number[],
  confidence: number,
): Change {
  if (before.length < 2 || after.length < 2) throw new RangeError('a change needs two values each')
  const [old, now] = [logarithmsOf(before), logarithmsOf(after)]
  const [oldError, nowError] = [sampleVariance(old) / old.length, sampleVariance(now) / now.length]
  const error = oldError + nowError
  // Of values that are all the same there is no error, and any number of degrees of freedom will do.
  const freedom =
    error ** 2 / (oldError ** 2 / (old.length - 1) + nowError ** 2 / (now.length - 1)) || 1
  const middle = mean(now) - mean(old)
  return { mean: Math.exp(middle), interval: intervalAround(middle, error, freedom, confidence) }
}

/** The interval around a mean of logarithms, as factors; `error` is the variance of that mean. */
function intervalAround(
  middle: number,
  error: number,
  freedom: number,
  confidence: number,
): Interval {
  const margin = jstat.studentt.inv((1 + confidence) / 2, freedom) * Math.sqrt(error)
  return { low: Math.exp(middle - margin), high: Math.exp(middle + margin) }
}

function logarithmsOf(values: readonly number[]): number[] {
  if (values.length > 0 && values.every((value) => value > 0)) return values.map(Math.log)
  throw new RangeError('there must be values, and all of them positive')
}
