/** What the connections send, by name; see `commandOf`. */
export const commandNames = ['GET', 'SET', 'MIX', 'MGET', 'LPUSH'] as const
export type CommandName = (typeof commandNames)[number]

/** As tables show them, where the name does not say it. */
export const commandTexts: Readonly<Record<string, string>> = {
  MIX: 'SET and GET, 1:1',
  MGET: 'MGET of 10',
}

/** Values of an MGET. */
const VALUES = 10

/** Of the list that LPUSH fills. */
export const LIST = 'list'

/** After so many LPUSHes an LTRIM keeps the list short: otherwise it would grow by gigabytes. */
const TRIMMED_AFTER = 63

/** The commands of a name as the generator takes them. */
export function commandOf(name: CommandName, bytes: number): string[] {
  const value = `{value:${bytes}}`
  const get = ['GET', '{key}']
  const set = ['SET', '{key}', value]
  const pushes = new Array(TRIMMED_AFTER).fill(['LPUSH', LIST, value, ';']).flat()
  return {
    ...{ GET: get, SET: set, MIX: [...set, ';', ...get] },
    MGET: ['MGET', ...new Array<string>(VALUES).fill('{key}')],
    LPUSH: [...pushes, 'LTRIM', LIST, '0', '0'],
  }[name]
}

const MOST_KEYS = 10_000
const MOST_BYTES_OF_KEYS = 64 * 2 ** 20

/** How many keys there are with values of so many bytes. */
export const keysOf = (bytes: number): number =>
  Math.max(1, Math.min(MOST_KEYS, Math.floor(MOST_BYTES_OF_KEYS / bytes)))

/** The most bytes of requests and replies that are under way at the same time. */
export const bytesUnderWay = (name: CommandName, bytes: number, requests: number): number =>
  requests * bytes * (name === 'MGET' ? VALUES : 1)

/** `64 B`, `16 kB`. */
export const sizeText = (bytes: string | number): string =>
  Number(bytes) % 1_024 === 0 ? `${Number(bytes) / 1_024} kB` : `${bytes} B`

/** What the source articles measured, by command and threads, with small values and one command at a time. */
export const documents = {
  SET: { 1: 85_200, 4: 210_300 },
  GET: { 1: 87_500, 4: 215_800 },
  MGET: { 1: 42_100, 4: 68_700 },
  LPUSH: { 1: 78_900, 4: 195_400 },
}
