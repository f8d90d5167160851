import type { Operation } from '../command.ts'
import type { OwnedKey } from '../keys.ts'
import { batches, walk } from '../redis/walk.ts'
import { statesOf } from '../sessions/check.ts'
import { firstEntries, readEntries, settledBefore } from '../sessions/list.ts'
import { endAndForget } from '../sessions/log-out.ts'
import { issuedAt } from '../tokens/tokens.ts'
import type { RetentionContext, TaskStep } from './context.ts'

/** How many entries of each user's list a sweep checks, oldest first. Reading a list checks the others. */
const ENTRIES_READ = 100

/**
 * Removes leftovers of interrupted logins, logouts and views.
 *
 * Without `sweepKeys` it finds only those of sessions that have a login or a last-seen time. The others stay: the
 * views or data of a session that is gone (at most 25 items and 64 fields), and entries of users' lists (about
 * 100 bytes each), which the next reading of the list removes.
 */
export async function* sweep(context: RetentionContext): AsyncGenerator<TaskStep> {
  const { runner, keys, batchSize, sweepKeys } = context
  for (const { login, recent } of keys.parts()) {
    for (const [command, key] of [
      ['HSCAN', login],
      ['ZSCAN', recent],
    ] as const) {
      for await (const entries of walk(runner, command, key, batchSize)) {
        const ids = entries.map(([id]) => id)
        yield await endHalves(context, ids)
      }
    }
  }
  if (!sweepKeys) return
  for await (const ids of scan(context, 'viewed', 'zset')) yield await endHalves(context, ids)
  for await (const ids of scan(context, 'data', 'hash')) yield await endHalves(context, ids)
  for await (const users of scan(context, 'sessions', 'zset')) yield await unlist(context, users)
}

/** Ends sessions that lack a login or a last-seen time. */
async function endHalves(context: RetentionContext, found: readonly string[]): Promise<TaskStep> {
  const { runner, keys, batchSize } = context
  const ours = found.filter((id) => isOurs(context, id))
  let swept = 0
  // Redis returns a small hash or sorted set completely, regardless of COUNT.
  for (const ids of batches(ours, batchSize)) {
    const states = await runner.run(statesOf(keys, ids))
    const halves = ids.filter((_, index) => !states[index]?.lastSeenAt)
    swept += await endAndForget(context, halves, { settledBefore: settledBefore(context) })
  }
  return { swept }
}

/** Removes entries without a session from the lists of these users. */
async function unlist(context: RetentionContext, users: readonly string[]): Promise<TaskStep> {
  const { runner, keys, batchSize } = context
  let swept = 0
  for (const some of batches(users, batchSize)) {
    const reading = some.map(async (user) => {
      const entries = await runner.run(firstEntries(keys, user, ENTRIES_READ))
      const ours = entries.filter(({ id }) => isOurs(context, id))
      return await readEntries(context, user, ours)
    })
    const read = await Promise.all(reading) // shares round trips
    for (const { removed } of read) swept += removed
  }
  return { swept }
}

/**
 * Whether the store issued the id, and its login is settled. Most ids of other programs that look like one decode to a
 * time in the future.
 */
const isOurs = (context: RetentionContext, id: string): boolean =>
  (issuedAt(id) ?? Number.POSITIVE_INFINITY) < 1000 * settledBefore(context)

/** The owners of all such keys, on all nodes, in batches. May return one twice, and may miss one that moves between them. */
async function* scan(
  { runner, keys, batchSize }: RetentionContext,
  kind: OwnedKey,
  type: 'zset' | 'hash',
): AsyncGenerator<readonly string[]> {
  const { pattern, ownerOf } = keys.find(kind)
  for (const { name } of await runner.nodes()) {
    let cursor = '0'
    do {
      const nodes = await runner.nodes()
      const node = nodes.length === 1 ? nodes[0] : nodes.find((other) => other.name === name)
      if (!node) break // it has no keys any more
      const step = await runner.runOn(node, scanKeys(cursor, pattern, type, batchSize))
      yield step.found.flatMap((key) => ownerOf(key) ?? [])
      cursor = step.next
    } while (cursor !== '0')
  }
}

/** Other programs may have keys of the same names, but hardly of the same type. */
const scanKeys = (
  cursor: string,
  pattern: string,
  type: string,
  count: number,
): Operation<{ next: string; found: readonly string[] }> => ({
  commands: [['SCAN', cursor, 'MATCH', pattern, 'COUNT', count, 'TYPE', type]],
  readOnly: true,
  read([reply]) {
    const [next, found] = reply as readonly [string, readonly string[]]
    return { next, found }
  },
})
