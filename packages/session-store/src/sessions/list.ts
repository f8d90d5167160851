import { scoreOf, timeOf } from '../command.ts'
import { type Entry, forgetSessions } from '../operations/lists.ts'
import { labelledStatesOf, MAX_LOGIN_SECONDS, recentIds, statesOf } from '../operations/sessions.ts'
import type { Settings } from '../options.ts'
import type { Runner } from '../redis/runner.ts'
import { batches, walk } from '../retention/walk.ts'

interface ListedSession {
  /** The session id, for `revokeSession`. It is not a credential. */
  id: string
  /** Milliseconds since 1970. */
  loggedInAt: number
  /** Milliseconds since 1970. */
  lastSeenAt: number
  /** Absent if the login had none. */
  label?: string
}

export interface UserSession extends ListedSession {
  /** Whether this is the session of the token passed to `userSessions`. */
  current: boolean
}

export interface ListContext extends Pick<Settings, 'keys' | 'now'> {
  readonly runner: Pick<Runner, 'run'>
}

/**
 * Maximum number of entries that one round trip reads or ends. With 20,000, the process was busy for more than a
 * second (2026-11-21).
 */
export const STEP_SIZE = 100

/** The entries of a user's list, `STEP_SIZE` at a time, latest login first, then highest id. */
export async function* entriesOf(
  { runner, keys }: ListContext,
  user: string,
): AsyncGenerator<Entry[]> {
  const all = new Map<string, Entry>()
  for await (const some of walk(runner, 'ZSCAN', keys.sessions(user), STEP_SIZE)) {
    for (const [id, score] of some) all.set(id, { id, score: Number(score) })
  }
  const inOrder = [...all.values()].sort((a, b) => b.score - a.score || (a.id < b.id ? 1 : -1))
  yield* batches(inOrder, STEP_SIZE)
}

/**
 * Returns the entries that have a session of the user, and how many it has removed: those without a session, unless the
 * login may be in progress: nothing else would lead to its session.
 */
export async function readEntries(
  { runner, keys, now }: ListContext,
  user: string,
  entries: readonly Entry[],
  read: typeof labelledStatesOf = statesOf,
): Promise<{ sessions: ListedSession[]; removed: number }> {
  if (entries.length === 0) return { sessions: [], removed: 0 }
  const states = await runner.run(
    read(
      keys,
      entries.map(({ id }) => id),
    ),
  )
  const sessions = entries.flatMap(({ id, score }, index) => {
    const { user: owner, ...state } = states[index] ?? { user: undefined, lastSeenAt: 0 }
    return owner === user ? [{ id, loggedInAt: timeOf(score), ...state }] : []
  })
  const existing = new Set(sessions.map(({ id }) => id))
  const settledBefore = scoreOf(now()) - MAX_LOGIN_SECONDS
  const stale = entries.filter(({ id, score }) => !existing.has(id) && score < settledBefore)
  if (stale.length > 0)
    await runner.run(
      forgetSessions(
        keys,
        user,
        stale.map(({ id }) => id),
      ),
    )
  return { sessions, removed: stale.length }
}

/** The sessions in a user's list, latest login first. */
export async function sessionsOf(context: ListContext, user: string): Promise<ListedSession[]> {
  const sessions: ListedSession[] = []
  for await (const entries of entriesOf(context, user)) {
    sessions.push(...(await readEntries(context, user, entries, labelledStatesOf)).sessions)
  }
  return sessions
}

export interface RecentSession {
  /** Null for a guest session. */
  user: string | null
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

/** As `SessionStore.recentSessions`. */
export async function recentSessions(
  { runner, keys }: ListContext,
  limit: number,
): Promise<RecentSession[]> {
  const recent = await runner.run(recentIds(keys, limit))
  if (recent.length === 0) return []
  const states = await runner.run(
    statesOf(
      keys,
      recent.map(({ id }) => id),
    ),
  )
  return recent.flatMap(({ lastSeenAt }, index) => {
    const state = states[index]
    return state ? [{ user: state.user, lastSeenAt }] : []
  })
}
