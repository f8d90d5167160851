import { InvalidArgumentError } from 'commander'
import { type BuildName, buildName } from './builds.ts'

// Parsers for commander: what they throw is shown together with the option's or argument's name.

export function parseBuild(text: string): BuildName {
  try {
    return buildName(text)
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : '')
  }
}

/** A parser of whole numbers from `least` to `most`. */
export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`A whole number from ${least} to ${most} is expected.`)
  }
}
