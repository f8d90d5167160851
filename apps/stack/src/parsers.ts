import { InvalidArgumentError } from 'commander'
import { Problem } from './problem.ts'

// Parsers for commander: what they throw is shown together with the option's (or variable's) name.

type Parser<T> = (text: string) => T

function number(pattern: RegExp, what: string) {
  return (min: number, max: number): Parser<number> =>
    (text) => {
      const value = pattern.test(text.trim()) ? Number(text) : Number.NaN
      if (value >= min && value <= max) return value
      throw new InvalidArgumentError(`It must be ${what} from ${min} to ${max}.`)
    }
}

const DECIMAL = /^\d{1,9}(\.\d{1,6})?$/

/** A parser for whole numbers from `min` to `max`; likewise the others. */
export const wholeNumber = number(/^\d{1,15}$/, 'a whole number')
export const seconds = number(DECIMAL, 'a number of seconds')
export const minutes = number(DECIMAL, 'a number of minutes')
export const percentage = number(DECIMAL, 'a percentage')(0.1, 1_000)
export const share = number(DECIMAL, 'a share')(0, 1)
export const port = wholeNumber(1, 65_535)

/** A parser for a list, separated by commas, of different things. */
export function list<T>(parse: Parser<T>): Parser<T[]> {
  return (text) => {
    const items = text.split(',').map((part) => parse(part.trim()))
    if (new Set(items.map((item) => JSON.stringify(item))).size === items.length) return items
    throw new InvalidArgumentError('Each may stand in the list only once.')
  }
}

/** Of URLs of HTTP servers: as an origin where there is no path. */
export const listOfUrls = list((text) => {
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.hash) {
    throw new InvalidArgumentError(`"${text}" is not like http://127.0.0.1:3000.`)
  }
  if (url.username || url.password) {
    // Not an InvalidArgumentError, beside which commander prints the argument.
    throw new Problem('--url: a URL must have no user and no password. Give them as a header.')
  }
  return url.pathname === '/' && url.search === '' ? url.origin : url.href
})

/** Of words out of `words`. */
export function listOf<T extends string>(words: readonly T[]): Parser<T[]> {
  return list((text) => {
    const word = words.find((known) => known === text)
    if (word !== undefined) return word
    throw new InvalidArgumentError(`"${text}" is none of ${words.join(', ')}.`)
  })
}
