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

/**
 * A ratio over the rounds, with the range. All tables show this mean. The interval
 * is the 95 % confidence interval; null with fewer than two rounds.
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
 * Summarizes the ratios of the rounds. The interval is Student's t over their logarithms (docs/method.md
 * explains this choice).
 *
 * @throws RangeError when the list is empty or has a value that is not positive.
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
  return { mean: Math.exp(middle), interval: intervalAround(middle, error, freedom, confidence) }
}

/** The confidence interval of a ratio, from the mean of its logarithms. @param error the variance of that mean. */
function intervalAround(middle: number, error: number, freedom: number, confidence: number) {
  const margin = jstat.studentt.inv((1 + confidence) / 2, freedom) * Math.sqrt(error)
  return { low: Math.exp(middle - margin), high: Math.exp(middle + margin) }
}

function logarithmsOf(values: readonly number[]): number[] {
  if (values.length > 0 && values.every((value) => value > 0)) return values.map(Math.log)
  throw new RangeError('ratios need at least one value, and only positive values')
}
