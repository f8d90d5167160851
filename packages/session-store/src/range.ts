export interface Range {
  least: number
  /** Default `Infinity`. */
  most?: number
  /** A whole number, or `Infinity` where that is in the range. */
  whole?: boolean
}

/** What is wrong with a value that must be a number in the range; undefined when nothing is. */
export function outOfRange(name: string, value: unknown, range: Range): string | undefined {
  const { least, most = Number.POSITIVE_INFINITY, whole = false } = range
  const fits = typeof value === 'number' && value >= least && value <= most
  if (fits && !(whole && Number.isFinite(value) && !Number.isInteger(value))) return undefined
  const kind = whole ? 'a whole number' : 'a number'
  const given = typeof value === 'number' ? value : `of type ${typeof value}`
  return `${name} must be ${kind} from ${least} to ${most}, not ${given}`
}

/** @throws TypeError, naming the option, for anything but a number in the range. */
export function checkRange(name: string, value: unknown, range: Range): asserts value is number {
  const wrong = outOfRange(name, value, range)
  if (wrong) throw new TypeError(wrong)
}
