import { InvalidArgumentError } from 'commander'

/** A parser for commander of whole numbers from `least` to `most`. */
export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`A whole number from ${least} to ${most} is expected.`)
  }
}
