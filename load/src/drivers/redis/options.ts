import { listOf, seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { type RedisBuild, redisBuilds } from '@onetrip/stack/redis.ts'
import { type Command, InvalidArgumentError, Option } from 'commander'

// Options that several experiments share; each gives its own defaults.

export interface RoundsOptions {
  rounds: number
  /** Seconds per run. */
  duration: number
}

/** `--rounds` and `--duration`. */
export function addRounds(command: Command, defaults: RoundsOptions): void {
  command
    .option('--rounds <n>', 'how often each variant is run', wholeNumber(1, 1_000), defaults.rounds)
    .option('--duration <seconds>', 'length of one run', seconds(0.1, 600), defaults.duration)
}

export interface BuildsOptions {
  builds: RedisBuild[]
}

/** `--builds` */
export function addBuilds(command: Command, defaults: readonly RedisBuild[]): void {
  command.addOption(namesOption('--builds <list>', redisBuilds, defaults))
}

/** An option for a list out of some names, by default all of them. */
export function namesOption<Name extends string>(
  flags: string,
  names: readonly Name[],
  defaults = names,
): Option {
  return new Option(flags, `out of ${names.join(', ')}`)
    .argParser(listOf(names))
    .default([...defaults], defaults === names ? 'all' : defaults.join(','))
}

/** A parser for a list, separated by commas, of different whole numbers from `min` to `max`. */
export function numbers(min: number, max: number): (text: string) => number[] {
  const one = wholeNumber(min, max)
  return (text) => {
    const list = text.split(',').map(one)
    if (new Set(list).size === list.length) return list
    throw new InvalidArgumentError('Each may stand in the list only once.')
  }
}

/** An option for a list of numbers; `--help` shows its default as it would be typed. */
export function numbersOption(
  flags: string,
  description: string,
  { min, max, defaults }: { min: number; max: number; defaults: readonly number[] },
): Option {
  return new Option(flags, description)
    .argParser(numbers(min, max))
    .default([...defaults], defaults.join(','))
}
