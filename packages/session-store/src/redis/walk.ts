import type { Operation } from '../command.ts'
import type { Runner } from './runner.ts'

/** Field and value of a hash, or member and score of a sorted set. */
type Entry = readonly [name: string, value: string]

const step = (
  command: 'HSCAN' | 'ZSCAN',
  key: string,
  cursor: string,
  count: number,
): Operation<{ next: string; entries: Entry[] }> => ({
  commands: [[command, key, cursor, 'COUNT', count]],
  readOnly: true,
  read([reply]) {
    const [next, flat] = reply as readonly [string, readonly string[]]
    return { next: String(next), entries: [...batches(flat, 2)] as unknown as Entry[] }
  },
})

/**
 * Walks a hash or sorted set. Yields the entries of one round trip at a time, some perhaps twice. May miss entries
 * that are added meanwhile.
 *
 * @param count A hint: Redis returns a small hash or sorted set completely.
 */
export async function* walk(
  runner: Pick<Runner, 'run'>,
  command: 'HSCAN' | 'ZSCAN',
  key: string,
  count: number,
): AsyncGenerator<Entry[]> {
  let cursor = '0'
  do {
    const { next, entries } = await runner.run(step(command, key, cursor, count))
    yield entries
    cursor = next
  } while (cursor !== '0')
}

export function* batches<Item>(all: readonly Item[], size: number): Generator<Item[]> {
  for (let from = 0; from < all.length; from += size) yield all.slice(from, from + size)
}
