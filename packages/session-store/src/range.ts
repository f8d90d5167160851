export interface Range {
  min: number
  /** Default `Infinity`. */
  max?: number
  /** Only integers, and `Infinity` if it is in the range. */
  integer?: boolean
}

/** Returns an error message unless the value is a number in the range. */
export function outOfRange(name: string, value: unknown, range: Range): string | undefined {
  const { min, max = Number.POSITIVE_INFINITY, integer = false } = range
  const fits = typeof value === 'number' && value >= min && value <= max
  if (fits && !(integer && Number.isFinite(value) && !Number.isInteger(value))) return undefined
  const kind = integer ? 'a whole number' : 'a number'
  const given = typeof value === 'number' ? value : `of type ${typeof value}`
  return `${name} must be ${kind} from ${min} to ${max}, not ${given}`
}

/** @throws TypeError naming the option, unless the value is a number in the range. */
export function checkRange(name: string, value: unknown, range: Range): asserts value is number {
  const wrong = outOfRange(name, value, range)
  if (wrong) throw new TypeError(wrong)
}
