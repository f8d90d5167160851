import { InvalidArgumentError } from 'commander'

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
