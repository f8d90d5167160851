/** Middle value and range of some samples, in the samples' own unit. */
export interface Summary {
  median: number
  min: number
  max: number
}

/** @throws RangeError when there is nothing to take the middle of. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.ceil(sorted.length / 2) - 1]
  if (upper === undefined || lower === undefined) throw new RangeError('no samples')
  return (lower + upper) / 2
}

/** @throws RangeError when there are no samples. */
export function summarize(values: readonly number[]): Summary {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/**
 * How many times `base` each value is, pair by pair: the two of a pair ran one after the other, so
 * that slow drifts of the machine cancel out. Pairs whose base is 0 have no ratio and are left out.
 *
 * @throws RangeError when the lists are not equally long.
 */
export function pairwiseRatios(values: readonly number[], base: readonly number[]): number[] {
  if (values.length !== base.length) throw new RangeError('pairs need lists of equal length')
  return values.flatMap((value, index) => {
    const below = base[index]
    return below === undefined || below === 0 ? [] : [value / below]
  })
}

const RATIO_CONFIDENCE = 0.95

/** How many times as much as something else, over the rounds. */
export interface Ratio extends Summary {
  /** The geometric mean, so that turning the ratio round turns its mean round. */
  mean: number
  /** In which the mean is with a confidence of 95 %; null with fewer than two rounds. */
  interval: Interval | null
}

interface Interval {
  low: number
  high: number
}

/**
 * Sums up what `pairwiseRatios` gives. The interval is that of Student's t over the logarithms of the
 * rounds' ratios (docs/statistics.md says why).
 *
 * @throws RangeError when there are no ratios, or one of them is not positive.
 */
export function summarizeRatios(ratios: readonly number[]): Ratio {
  const logarithms = logarithmsOf(ratios)
  const middle = average(logarithms)
  const error = variance(logarithms) / ratios.length
  const freedom = ratios.length - 1
  const interval = freedom > 0 ? intervalAround(middle, error, freedom, RATIO_CONFIDENCE) : null
  return { ...summarize(ratios), mean: Math.exp(middle), interval }
}

/** The interval around a mean of logarithms, as factors; `error` is the variance of that mean. */
function intervalAround(
  middle: number,
  error: number,
  freedom: number,
  confidence: number,
): Interval {
  const margin = studentQuantile((1 + confidence) / 2, freedom) * Math.sqrt(error)
  return { low: Math.exp(middle - margin), high: Math.exp(middle + margin) }
}

/** How many times as much as before. */
export interface Change {
  mean: number
  interval: Interval
}

/**
 * How many times `before` the values of `after` are, of two runs that have nothing in common: Welch's
 * interval over the logarithms, with degrees of freedom rounded down.
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
  const [oldError, nowError] = [variance(old) / old.length, variance(now) / now.length]
  const error = oldError + nowError
  const freedom =
    error ** 2 / (oldError ** 2 / (old.length - 1) + nowError ** 2 / (now.length - 1)) || 1
  const middle = average(now) - average(old)
  // Whole degrees of freedom only; 7.9999999 is 8.
  const whole = Math.floor(freedom + 1e-9)
  return { mean: Math.exp(middle), interval: intervalAround(middle, error, whole, confidence) }
}

/** @throws RangeError when there are none, or one is not positive. */
function logarithmsOf(values: readonly number[]): number[] {
  if (values.length > 0 && values.every((value) => value > 0)) return values.map(Math.log)
  throw new RangeError('there must be values, and all of them positive')
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Of the samples, with Bessel's correction. */
function variance(values: readonly number[]): number {
  const middle = average(values)
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0)
  return squares / (values.length - 1)
}

/**
 * The value that Student's t with so many (whole) degrees of freedom stays below with `probability`
 * (at least 1/2), to nine digits.
 */
export function studentQuantile(probability: number, freedom: number): number {
  let [low, high] = [0, 1]
  while (studentBelow(high, freedom) < probability) high *= 2
  while (high - low > 1e-9 * high) {
    const middle = (low + high) / 2
    if (studentBelow(middle, freedom) < probability) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/**
 * The probability that Student's t is below `t` (Abramowitz and Stegun, Handbook of Mathematical
 * Functions, 26.7.3 and 26.7.4).
 */
function studentBelow(t: number, freedom: number): number {
  const angle = Math.atan(t / Math.sqrt(freedom))
  const odd = freedom % 2 === 1
  let term = odd ? Math.cos(angle) : 1
  let sum = odd && freedom === 1 ? 0 : term
  for (let k = odd ? 3 : 2; k <= freedom - 2; k += 2) {
    term *= ((k - 1) / k) * Math.cos(angle) ** 2
    sum += term
  }
  const within = odd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum
  return (1 + within) / 2
}
