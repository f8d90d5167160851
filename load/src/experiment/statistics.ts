import jstat from 'jstat'
import { max, mean, median, min, sampleVariance } from 'simple-statistics'

/** Middle value and range of some samples, in the samples' own unit. */
export interface Summary {
  median: number
  min: number
  max: number
}

/** How many times as much: the geometric mean, since the inverse ratio has the inverse mean. */
export interface Change {
  mean: number
  interval: { low: number; high: number }
}

/**
 * The same over the rounds, with the range. All that is said of a ratio gives this mean, so that no two figures
 * of it differ; the interval is that of 95 %, null with fewer than two rounds.
 */
export interface Ratio extends Omit<Summary, 'median'> {
  mean: number
  interval: Change['interval'] | null
}

/** @throws RangeError when there are no values. */
export function summarize(values: readonly number[]): Summary {
  if (values.length === 0) throw new RangeError('no samples')
  const list = [...values]
  return { median: median(list), min: min(list), max: max(list) }
}

/**
 * Sums up ratios of the rounds. The interval is Student's t over their logarithms (docs/statistics.md
 * says why).
 *
 * @throws RangeError when there are none, or one of them is not positive.
 */
export function summarizeRatios(ratios: readonly number[]): Ratio {
  const logarithms = logarithmsOf(ratios)
  const [middle, freedom] = [mean(logarithms), ratios.length - 1]
  const error = freedom > 0 ? sampleVariance(logarithms) / ratios.length : 0
  const interval = freedom > 0 ? intervalAround(middle, error, freedom, 0.95) : null
  const { min, max } = summarize(ratios)
  return { min, max, mean: Math.exp(middle), interval }
}

/**
 * How many times `before` the values of `after` are, of two independent runs: Welch's interval over the
 * logarithms.
 *
 * @param confidence of the interval, 0.99 for 99 %.
 * @throws when one of them has fewer than two values, or a value is not positive.
 */
export function changeBetween(
  before: readonly number[],
  after: readonly number[],
  confidence: number,
): Change {
  const [old, now] = [logarithmsOf(before), logarithmsOf(after)]
  const [oldError, nowError] = [sampleVariance(old) / old.length, sampleVariance(now) / now.length]
  const error = oldError + nowError
  // Equal values have no error; then any number of degrees of freedom will do.
  const freedom =
    error ** 2 / (oldError ** 2 / (old.length - 1) + nowError ** 2 / (now.length - 1)) || 1
  const middle = mean(now) - mean(old)
  return { mean: Math.exp(middle), interval: intervalAround(middle, error, freedom, confidence) }
}

/** The interval around a mean of logarithms, as factors; `error` is the variance of that mean. */
function intervalAround(middle: number, error: number, freedom: number, confidence: number) {
  const margin = jstat.studentt.inv((1 + confidence) / 2, freedom) * Math.sqrt(error)
  return { low: Math.exp(middle - margin), high: Math.exp(middle + margin) }
}

function logarithmsOf(values: readonly number[]): number[] {
  if (values.length > 0 && values.every((value) => value > 0)) return values.map(Math.log)
  throw new RangeError('there must be values, and all of them positive')
}
