import type { Reply } from '../command.ts'
import { StoreError } from '../errors.ts'

/** An error that Redis would reply. */
export class ReplyError extends Error {
  override name = 'ReplyError'
}

export const wrongType = () =>
  new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value')

export const onlyRedis = (what: string, cause?: unknown) =>
  new StoreError(
    'ONETRIP_WRONG_TYPE',
    `the store for tests does not support ${what}: use a real Redis for this test`,
    { cause },
  )

export function numberOf(text: string | undefined): number {
  const number = Number(text?.replace(/^([+-])inf$/, '$1Infinity') || Number.NaN)
  if (Number.isNaN(number)) throw new ReplyError('ERR value is not a valid number')
  return number
}

/** @param known The options of the command, each with the number of its arguments. */
export function optionsOf(args: readonly string[], known: Record<string, number>) {
  const options: Record<string, readonly string[]> = {}
  for (let at = 0; at < args.length; ) {
    const name = String(args[at++])
    const count = known[name]
    if (count === undefined) throw onlyRedis(`the option ${name}`)
    options[name] = args.slice(at, at + count)
    at += count
  }
  return options
}

/** The elements from one position to another; negative positions count from the end. */
export function slice<Item>(all: readonly Item[], from: string, to: string): Item[] {
  const place = (text: string) => numberOf(text) + (numberOf(text) < 0 ? all.length : 0)
  return all.slice(Math.max(0, place(from)), Math.max(0, place(to) + 1))
}

export function pairsOf(flat: readonly string[]): [string, string][] {
  const firsts = flat.filter((_, index) => index % 2 === 0)
  return firsts.map((first, index) => [first, flat[2 * index + 1] ?? ''])
}

/** The pattern of a MATCH, without classes of characters. */
const patternOf = (glob: string) =>
  new RegExp(
    `^${glob.replace(/\\(.)|./gs, (found, escaped?: string) => {
      if (found === '*') return '.*'
      return found === '?' ? '.' : (escaped ?? found).replace(/\W/gu, '\\$&')
    })}$`,
    's',
  )

/** All entries at once: the cursor of the reply is 0. */
export function scanned(entries: readonly (readonly string[])[], args: readonly string[]): Reply {
  const { MATCH: [match = '*'] = [] } = optionsOf(args, { MATCH: 1, COUNT: 1 })
  const pattern = patternOf(match)
  return ['0', entries.filter(([name = '']) => pattern.test(name)).flat()]
}
