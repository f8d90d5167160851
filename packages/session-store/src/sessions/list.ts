import { type Command, memberScores, type Operation, scoreOf, timeOf, writing } from '../command.ts'
import type { Keys } from '../keys.ts'
import type { Settings } from '../options.ts'
import { batches, walk } from '../redis/walk.ts'
import { recentIds, statesOf } from './check.ts'

/** The maximum time from the first to the last write of a login. */
const MAX_LOGIN_SECONDS = 60

/** A login that started before this time is complete or has failed. Unix seconds. */
export const settledBefore = ({ now }: Pick<Settings, 'now'>): number =>
  scoreOf(now()) - MAX_LOGIN_SECONDS

/** An entry of a user's list. */
interface Entry {
  id: string
  /** The login time exactly as stored in Redis: Unix seconds with fraction. */
  score: number
}

/**
 * KEYS: sessions of the user. ARGV: login time, id. Adds an entry that is the latest even if the clock of this process
 * is behind that of another one. So the order of a list never changes: a login never ends its own session, and two at
 * once never end each other's.
 */
const ADD = `-- add to list
local newest = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
local score = ARGV[1]
if newest and newest > tonumber(score) then score = string.format('%.3f', newest + 0.001) end
return redis.call('ZADD', KEYS[1], score, ARGV[2])`

/** Adds a session to the list of its user. */
export const addToList = (keys: Keys, user: string, score: number, id: string): Command => [
  'EVAL',
  ADD,
  1,
  keys.sessions(user),
  score,
  id,
]

/** Removes sessions from a user's list. Keys: sessions of the user. */
export const forgetSessions = (keys: Keys, user: string, ids: readonly string[]) =>
  writing(['ZREM', keys.sessions(user), ...ids])

/** At most `count` entries of a user's list, oldest login first; with REV, the latest. Keys: sessions of the user. */
export const firstEntries = (
  keys: Keys,
  user: string,
  count: number,
  ...order: 'REV'[]
): Operation<Entry[]> => ({
  commands: [['ZRANGE', keys.sessions(user), 0, count - 1, ...order, 'WITHSCORES']],
  readOnly: true,
  read: ([reply]) => memberScores(reply).map(([id, score]) => ({ id, score })),
})

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

type Context = Pick<Settings, 'runner' | 'keys' | 'now'>

/**
 * Maximum number of entries that one round trip reads or ends. With 20,000, the process was busy for more than a
 * second (2026-11-21).
 */
export const STEP_SIZE = 100

/** The entries of a user's list, `STEP_SIZE` at a time, latest login first, then highest id. */
export async function* entriesOf({ runner, keys }: Context, user: string): AsyncGenerator<Entry[]> {
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
  context: Context,
  user: string,
  entries: readonly Entry[],
  withLabels = false,
): Promise<{ sessions: ListedSession[]; removed: number }> {
  if (entries.length === 0) return { sessions: [], removed: 0 }
  const { runner, keys } = context
  const ids = entries.map(({ id }) => id)
  const states = await runner.run(statesOf(keys, ids, withLabels))
  const sessions: ListedSession[] = []
  const stale: string[] = []
  for (const [index, { id, score }] of entries.entries()) {
    const { user: owner, ...state } = states[index] ?? { user: undefined, lastSeenAt: 0 }
    if (owner === user) sessions.push({ id, loggedInAt: timeOf(score), ...state })
    else if (score < settledBefore(context)) stale.push(id)
  }
  if (stale.length > 0) await runner.run(forgetSessions(keys, user, stale))
  return { sessions, removed: stale.length }
}

/** The sessions in a user's list, latest login first. */
export async function sessionsOf(context: Context, user: string): Promise<ListedSession[]> {
  const sessions: ListedSession[] = []
  for await (const entries of entriesOf(context, user)) {
    sessions.push(...(await readEntries(context, user, entries, true)).sessions)
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
  { runner, keys }: Context,
  limit: number,
): Promise<RecentSession[]> {
  const recent = await runner.run(recentIds(keys, limit))
  if (recent.length === 0) return []
  const ids = recent.map(({ id }) => id)
  const states = await runner.run(statesOf(keys, ids))
  return recent.flatMap(({ lastSeenAt }, index) => {
    const state = states[index]
    return state ? [{ user: state.user, lastSeenAt }] : []
  })
}
