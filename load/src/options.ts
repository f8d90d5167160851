import { type Command, InvalidArgumentError, Option } from 'commander'

// Parsers for commander: what they throw is shown together with the option's (or variable's) name.

/** A parser for whole numbers from `min` to `max`. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

/** A parser for seconds, fractions allowed, from `min` to `max`. */
export function seconds(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}(\.\d{1,3})?$/.test(text.trim()) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a number of seconds from ${min} to ${max}.`)
  }
}

/** A parser for a share from 0 to 1. */
export function share(text: string): number {
  const value = /^\d(\.\d{1,6})?$/.test(text.trim()) ? Number(text) : Number.NaN
  if (value <= 1) return value
  throw new InvalidArgumentError('It must be a share from 0 to 1, like 0.2.')
}

/** A parser for percentages from 0.1 to 1,000. */
export function percentage(text: string): number {
  const value = /^\d{1,4}(\.\d{1,3})?$/.test(text.trim()) ? Number(text) : Number.NaN
  if (value >= 0.1 && value <= 1_000) return value
  throw new InvalidArgumentError('It must be a percentage from 0.1 to 1000, like 10.')
}

export const port = wholeNumber(1, 65_535)

/** A parser for a list of different URLs of HTTP servers, separated by commas. */
export function listOfUrls(text: string): string[] {
  const urls = text.split(',').map((part) => {
    const url = URL.parse(part.trim())
    if (url?.protocol === 'http:' && url.pathname === '/') return url.origin
    throw new InvalidArgumentError(`"${part.trim()}" is not like http://127.0.0.1:3000.`)
  })
  if (new Set(urls).size === urls.length) return urls
  throw new InvalidArgumentError('Each may stand in the list only once.')
}

/** A parser for a list, separated by commas, of different words out of `words`. */
export function listOf<T extends string>(words: readonly T[]): (text: string) => T[] {
  return (text) => {
    const names = text.split(',').map((name) => name.trim())
    const list = names.map((name) => {
      const word = words.find((known) => known === name)
      if (word !== undefined) return word
      throw new InvalidArgumentError(`"${name}" is none of ${words.join(', ')}.`)
    })
    if (new Set(list).size === list.length) return list
    throw new InvalidArgumentError('Each may stand in the list only once.')
  }
}

/** What `--quick` and `--full` set, unless the user says otherwise. */
export interface Presets<Options> {
  quick: Partial<Options>
  full: Partial<Options>
}

/** Adds `--quick` and `--full` to a command. */
export function addPresets(command: Command, about: { quick: string; full: string }): Command {
  return command
    .addOption(new Option('--quick', about.quick).conflicts('full'))
    .addOption(new Option('--full', about.full).conflicts('quick'))
}

/** The options as given, else as the preset has them that was asked for, else the defaults. */
export function withPresets<Options extends object>(
  command: Command,
  presets: Presets<Options>,
): Options {
  const { quick, full } = command.opts<{ quick?: boolean; full?: boolean }>()
  return unlessGiven(command, quick ? presets.quick : full ? presets.full : {})
}

/** The options as given, else the values, else the defaults. */
export function unlessGiven<Options extends object>(
  command: Command,
  values: Partial<Options>,
): Options {
  const open = Object.entries(values).filter(([name]) => !isGiven(command, name))
  return { ...command.opts<Options>(), ...Object.fromEntries(open) }
}

/** Whether the user gave an option, on the command line or in the environment. */
function isGiven(command: Command, name: string): boolean {
  const source = command.getOptionValueSource(name)
  return source !== undefined && source !== 'default'
}
