import { list, listOf, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Option } from 'commander'

// Options of several experiments.

/** An option for a list of names. Default: all of them. */
export function namesOption<Name extends string>(
  flags: string,
  names: readonly Name[],
  defaults = names,
): Option {
  return new Option(flags, `any of ${names.join(', ')}`)
    .argParser(listOf(names))
    .default([...defaults], defaults === names ? 'all' : defaults.join(','))
}

/** A parser for a list of whole numbers from `min` to `max`. */
export const numbers = (min: number, max: number) => list(wholeNumber(min, max))

/** An option for a list of whole numbers. `--help` shows its default as `1,2,4`. */
export function numbersOption(
  flags: string,
  description: string,
  [min, max]: readonly [number, number],
  defaults: readonly number[],
): Option {
  return new Option(flags, description)
    .argParser(numbers(min, max))
    .default([...defaults], defaults.join(','))
}
