import jstat from 'jstat'
import { max, mean, median, min, sampleVariance } from 'simple-statistics'

export interface Summary {
  median: number
  min: number
  max: number
}

/** A ratio: its geometric mean, because the mean of the inverse ratios is then the inverse of the mean. */
export interface Change {
  mean: number
  interval: { low: number; high: number }
}

/** A ratio over the rounds: the geometric mean, with the range. */
export interface Ratio extends Omit<Summary, 'median'> {
  mean: number
}

/** @throws RangeError when there are no values. */
export function summarize(values: readonly number[]): Summary {
  if (values.length === 0) throw new RangeError('no samples')
  const list = [...values]
  return { median: median(list), min: min(list), max: max(list) }
}

/** @throws RangeError when the list is empty or has a value that is not positive. */
export function summarizeRatios(ratios: readonly number[]): Ratio {
  const { min, max } = summarize(ratios)
  return { min, max, mean: Math.exp(mean(logarithmsOf(ratios))) }
}

/**
 * The ratio of `after` to `before`, two independent samples, with Welch's interval over the logarithms.
 *
 * @param confidence of the interval: 0.99 for 99 %.
 * @throws when a sample has fewer than two values, or a value is not positive.
 */
export function changeBetween(
  before: readonly number[],
  after: readonly number[],
  confidence: number,
): Change {
  const [old, now] = [logarithmsOf(before), logarithmsOf(after)]
  const [oldError, nowError] = [sampleVariance(old) / old.length, sampleVariance(now) / now.length]
  const error = oldError + nowError
  // Without variance the quotient is NaN, and any number of degrees of freedom gives the same interval.
  const freedom =
    error ** 2 / (oldError ** 2 / (old.length - 1) + nowError ** 2 / (now.length - 1)) || 1
  const middle = mean(now) - mean(old)
  const margin = jstat.studentt.inv((1 + confidence) / 2, freedom) * Math.sqrt(error)
  const interval = { low: Math.exp(middle - margin), high: Math.exp(middle + margin) }
  return { mean: Math.exp(middle), interval }
}

function logarithmsOf(values: readonly number[]): number[] {
  if (values.length > 0 && values.every((value) => value > 0)) return values.map(Math.log)
  throw new RangeError('ratios need at least one value, and only positive values')
}
