import { InvalidArgumentError } from 'commander'
import { Problem } from './problem.ts'

// Parsers for commander, which prints their errors after the name of the option or variable.

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

// The first two take the limits and return a parser.
export const wholeNumber = number(/^\d{1,15}$/, 'a whole number')
export const seconds = number(DECIMAL, 'a number of seconds')
export const percentage = number(DECIMAL, 'a percentage')(0.1, 1_000)
export const share = number(DECIMAL, 'a share')(0, 1)
export const port = wholeNumber(1, 65_535)

/** Returns a parser for a comma-separated list without duplicates. */
export function list<T>(parse: Parser<T>): Parser<T[]> {
  return (text) => {
    const items = text.split(',').map((part) => parse(part.trim()))
    if (new Set(items.map((item) => JSON.stringify(item))).size === items.length) return items
    throw new InvalidArgumentError('Each value may appear only once.')
  }
}

/** Parses a list of URLs of HTTP servers. A URL without a path becomes an origin. */
export const listOfUrls = list((text) => {
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.hash) {
    throw new InvalidArgumentError(`"${text}" is not like http://127.0.0.1:3000.`)
  }
  if (url.username || url.password) {
    // Not an InvalidArgumentError, because commander would print the argument with it.
    throw new Problem('--url: a URL must not contain a user or password. Use a header instead.')
  }
  return url.pathname === '/' && url.search === '' ? url.origin : url.href
})

/** Returns a parser for a list of words out of `words`. */
export function listOf<T extends string>(words: readonly T[]): Parser<T[]> {
  return list((text) => {
    const word = words.find((known) => known === text)
    if (word !== undefined) return word
    throw new InvalidArgumentError(`"${text}" is not one of ${words.join(', ')}.`)
  })
}
