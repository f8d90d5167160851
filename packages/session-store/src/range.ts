export interface Range {
  least: number
  /** Default `Infinity`. */
  most?: number
  /** A whole number, or `Infinity` where that is in the range. */
  whole?: boolean
}

/** @throws TypeError, naming the option, for anything but a number in the range. */
export function checkRange(name: string, value: unknown, range: Range): asserts value is number {
  const { least, most = Number.POSITIVE_INFINITY, whole = false } = range
  const fits = typeof value === 'number' && value >= least && value <= most
  if (!fits || (whole && Number.isFinite(value) && !Number.isInteger(value))) {
    const kind = whole ? 'a whole number' : 'a number'
    throw new TypeError(`${name} must be ${kind} from ${least} to ${most}, not ${value}`)
  }
}
