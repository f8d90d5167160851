import type { Operation } from '../command.ts'
import { publishWarning } from '../diagnostics.ts'
import type { KeysFound, OwnedKey, SessionsPart } from '../keys.ts'
import { statesOf } from '../operations/sessions.ts'
import { issuedAt } from '../tokens/tokens.ts'
import { oldestOfUsers, removeOrphans } from './orphans.ts'
import {
  forget,
  isOtherType,
  type RetentionContext,
  settledBefore,
  type TaskStep,
} from './retention-tasks.ts'
import { batches, walk } from './walk.ts'

const CLOCK_SKEW_SECONDS = 60

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
  for (const part of context.keys.parts()) {
    yield* sweepRecords(context, part, 'HSCAN')
    yield* sweepRecords(context, part, 'ZSCAN')
  }
  if (!context.sweepKeys) return
  yield* sweepOwned(context, 'viewed')
  yield* sweepOwned(context, 'data')
  yield* sweepLists(context)
}

/** `HSCAN` finds logins without a last-seen time, `ZSCAN` finds sessions without a login. */
async function* sweepRecords(
  context: RetentionContext,
  part: SessionsPart,
  command: 'HSCAN' | 'ZSCAN',
): AsyncGenerator<TaskStep> {
  const { runner, batchSize } = context
  const unseen = command === 'HSCAN'
  const key = unseen ? part.login : part.recent
  for await (const entries of walk(runner, command, key, { count: batchSize })) {
    const found = entries.map(([id]) => id)
    let swept = 0
    // Redis returns a small hash or sorted set completely, regardless of COUNT.
    for (const ids of batches(sweepable(context, found, unseen), batchSize)) {
      swept += await remove(context, ids, unseen)
    }
    yield { swept }
  }
}

/** Removes views or data of sessions without a login. */
async function* sweepOwned(context: RetentionContext, kind: OwnedKey): AsyncGenerator<TaskStep> {
  for await (const owners of scan(context, context.keys.find(kind))) {
    let swept = 0
    for (const ids of batches(sweepable(context, owners, false), context.batchSize)) {
      swept += await remove(context, ids, false)
    }
    yield { swept }
  }
}

/** Removes entries of users' lists whose session is gone. Warns about keys of that name that are not lists. */
async function* sweepLists(context: RetentionContext): AsyncGenerator<TaskStep> {
  const { keys, batchSize } = context
  let foreign = 0
  const lists = keys.find('sessions')
  for await (const users of scan(context, lists)) {
    let swept = 0
    for (const some of batches(users, batchSize)) {
      const listed = await oldestEntries(context, some)
      for (const entries of batches(listed.entries, batchSize)) {
        swept += await unlist(context, entries)
      }
      foreign += listed.foreign
    }
    yield { swept }
  }
  if (foreign === 0) return
  publishWarning({
    code: 'ONETRIP_FOREIGN_KEY',
    message: `${foreign} keys that match ${lists.pattern} are not sorted sets, so another program uses this database. The sweep skipped them. Use a separate database (or, for a new store, the option prefix)`,
  })
}

/**
 * Reads the oldest entries of these users' lists, and counts the keys that are not lists. One such key makes the
 * operation fail; then the halves are read separately.
 */
async function oldestEntries(context: RetentionContext, users: readonly string[]): Promise<Listed> {
  const { runner, keys } = context
  try {
    return { entries: await runner.run(oldestOfUsers(keys, users, ENTRIES_READ)), foreign: 0 }
  } catch (error) {
    if (!isOtherType(error)) throw error
    if (users.length === 1) return { entries: [], foreign: 1 }
    const middle = Math.ceil(users.length / 2)
    const first = await oldestEntries(context, users.slice(0, middle))
    const second = await oldestEntries(context, users.slice(middle))
    return {
      entries: [...first.entries, ...second.entries],
      foreign: first.foreign + second.foreign,
    }
  }
}

interface Listed {
  entries: { id: string; user: string }[]
  foreign: number
}

async function unlist(
  context: RetentionContext,
  entries: readonly { id: string; user: string }[],
): Promise<number> {
  const ids = new Set(
    sweepable(
      context,
      entries.map(({ id }) => id),
      true,
    ),
  )
  const old = entries.filter(({ id }) => ids.has(id))
  if (old.length === 0) return 0
  const { runner, keys } = context
  const states = await runner.run(
    statesOf(
      keys,
      old.map(({ id }) => id),
    ),
  )
  const stale = old.filter(({ user }, index) => states[index]?.user !== user)
  await forget(context, stale)
  return stale.length
}

/** The owners of all such keys, on all nodes, in batches. May return one twice, and may miss one whose slot moves. */
async function* scan(
  { runner, batchSize }: RetentionContext,
  { pattern, ownerOf }: KeysFound,
): AsyncGenerator<readonly string[]> {
  for (const { name } of await runner.nodes()) {
    let cursor = '0'
    do {
      const nodes = await runner.nodes()
      const node = nodes.length === 1 ? nodes[0] : nodes.find((other) => other.name === name)
      if (!node) break // it has left the cluster
      const step = await runner.runOn(node, scanKeys(cursor, pattern, batchSize))
      yield step.keys.flatMap((key) => ownerOf(key) ?? [])
      cursor = step.next
    } while (cursor !== '0')
  }
}

const scanKeys = (
  cursor: string,
  match: string,
  count: number,
): Operation<{ next: string; keys: readonly string[] }> => ({
  commands: [['SCAN', cursor, 'MATCH', match, 'COUNT', count]],
  readOnly: true,
  read([reply]) {
    const [next, keys] = reply as readonly [string, readonly string[]]
    return { next, keys }
  },
})

/** The ids that the store created; with `settledOnly`, only those whose login is settled. */
function sweepable(
  context: RetentionContext,
  ids: readonly string[],
  settledOnly: boolean,
): string[] {
  // The store issued no id in the future. Most ids of other programs that look like one decode to such a time.
  const now = 1000 * (context.now() + CLOCK_SKEW_SECONDS)
  const issuedBefore = settledOnly ? 1000 * settledBefore(context) : now
  return ids.filter((id) => {
    const issued = issuedAt(id)
    return issued !== undefined && issued < issuedBefore
  })
}

/** Removes those of the sessions that have no login, or with `unseen` no last-seen time. */
async function remove(
  context: RetentionContext,
  ids: readonly string[],
  unseen: boolean,
): Promise<number> {
  const { runner, keys } = context
  const states = await runner.run(statesOf(keys, ids))
  const isOrphan = (state: (typeof states)[number]) =>
    unseen ? state?.lastSeenAt === 0 : state === undefined
  const orphans = ids.filter((_, index) => isOrphan(states[index]))
  if (orphans.length === 0) return 0
  const removed = await runner.run(
    removeOrphans(keys, orphans, { unseen, settledBefore: settledBefore(context) }),
  )
  await forget(context, removed)
  return removed.length
}
