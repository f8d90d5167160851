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
