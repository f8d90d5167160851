import type { commandNames } from '../settings.ts'

/** A command of the preset, see `commandOf`. */
export type CommandName = (typeof commandNames)[number]

/** Texts for tables, if they differ from the name. */
export const commandTexts: Readonly<Record<string, string>> = {
  MIX: 'SET and GET, 1:1',
  MGET: 'MGET of 10',
}

/** Keys of an MGET. */
const VALUES = 10

/** The key for LPUSH. */
export const LIST = 'list'

/** After this number of LPUSH commands, an LTRIM keeps the list short. Otherwise it would grow by gigabytes. */
const TRIMMED_AFTER = 63

/** The arguments of the generator for a command. */
export function commandOf(name: CommandName, bytes: number): string[] {
  const value = `{value:${bytes}}`
  const get = ['GET', '{key}']
  const set = ['SET', '{key}', value]
  const pushes = new Array(TRIMMED_AFTER).fill(['LPUSH', LIST, value, ';']).flat()
  return {
    GET: get,
    SET: set,
    MIX: [...set, ';', ...get],
    MGET: ['MGET', ...new Array<string>(VALUES).fill('{key}')],
    LPUSH: [...pushes, 'LTRIM', LIST, '0', '0'],
  }[name]
}

const MAX_KEYS = 10_000
const MAX_BYTES_OF_KEYS = 64 * 2 ** 20

/** The number of keys, by the size of their values. */
export const keysOf = (bytes: number): number =>
  Math.max(1, Math.min(MAX_KEYS, Math.floor(MAX_BYTES_OF_KEYS / bytes)))

/** The largest number of bytes of values in flight. @param requests in flight. */
export const bytesInFlight = (name: CommandName, bytes: number, requests: number): number =>
  requests * bytes * (name === 'MGET' ? VALUES : 1)

/** `64 B`, `16 kB`. */
export const sizeText = (bytes: string | number): string =>
  Number(bytes) % 1_024 === 0 ? `${Number(bytes) / 1_024} kB` : `${bytes} B`
