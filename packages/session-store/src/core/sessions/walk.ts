import type { Operation } from '../operation.ts'

/** One step of a walk over a hash or sorted set. A walk may return an entry twice. */
interface WalkStep {
  /** Where to continue; undefined at the end. */
  readonly cursor: string | undefined
  /** Field and value of a hash, or member and score of a sorted set. */
  readonly entries: readonly (readonly [name: string, value: string])[]
}

interface WalkOptions {
  /** The cursor of the previous step; undefined for the first one. */
  cursor: string | undefined
  /** A hint: Redis returns a small hash or sorted set completely. */
  count: number
  /** Returns only names that match this pattern. Default: all. */
  match?: string
}

/** Reads the entries of one step, and where to continue. Keys: `key`. */
export function walk(
  command: 'HSCAN' | 'ZSCAN',
  key: string,
  { cursor = '0', count, match }: WalkOptions,
): Operation<WalkStep> {
  const matching = match === undefined ? [] : ['MATCH', match]
  return {
    commands: [[command, key, cursor, ...matching, 'COUNT', count]],
    readOnly: true,
    read([reply]) {
      const [next, flat] = reply as readonly [string, readonly string[]]
      return {
        cursor: String(next) === '0' ? undefined : String(next),
        entries: [...batches(flat, 2)] as unknown as WalkStep['entries'],
      }
    },
  }
}

/** The approximate number of logins that one round trip of a walk reads. */
export const LOGINS_PER_STEP = 1_000

/** The number of sessions that one round trip of a walk reads completely, or ends. */
export const SESSIONS_PER_STEP = 20

export function* batches<Item>(all: readonly Item[], size: number): Generator<Item[]> {
  for (let from = 0; from < all.length; from += size) yield all.slice(from, from + size)
}
