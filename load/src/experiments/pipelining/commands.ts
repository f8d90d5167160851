import type { Case } from '../../experiment/shape.ts'

/** redis-benchmark's own key and value, which it uses for `-t get` and `-t set`. */
const KEY = 'key:__rand_int__'
const VALUE = 'xxx'

/**
 * The cases, by the number of values: GET and SET in pipelines, MGET and MSET of many keys. A single GET
 * and a single SET are always among them, since the others are compared with these.
 */
export function commands(pipelines: readonly number[], keys: readonly number[]): Case[] {
  const pipelined = [...new Set([1, ...pipelines])].map((values) => ({
    values,
    names: ['GET', 'SET'],
  }))
  const variadic = keys.map((values) => ({ values, names: ['MGET', 'MSET'] }))
  return [...pipelined, ...variadic]
    .toSorted((a, b) => a.values - b.values)
    .flatMap(({ values, names }) => names.map((command) => ({ command, values })))
}

export const isReading = (command: Case[string] | undefined) => String(command).endsWith('GET')

/** What redis-benchmark sends for a case: a command, how many in one write, and how many keys in each. */
export function sentBy({ command, values }: Case): {
  words: string[]
  pipeline: number
  keys: number
} {
  const [name, count] = [String(command), Number(values)]
  const isVariadic = name.startsWith('M')
  const names = isVariadic ? keyNames(count) : [KEY]
  return {
    words: [name, ...(isReading(name) ? names : names.flatMap((key) => [key, VALUE]))],
    pipeline: isVariadic ? 1 : count,
    keys: names.length,
  }
}

/** Every key that is read, with its value. */
export function keyspace(keys: readonly number[]): Record<string, string> {
  const list = [KEY, ...keyNames(Math.max(0, ...keys))]
  return Object.fromEntries(list.map((key) => [key, VALUE]))
}

const keyNames = (count: number) => Array.from({ length: count }, (_, index) => `${KEY}:${index}`)
