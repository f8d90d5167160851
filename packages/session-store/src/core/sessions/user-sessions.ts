import { type Keys, recordsOf } from '../keys.ts'
import {
  type Command,
  memberScores,
  type NamedOperation,
  namedOperation,
  type Operation,
  type Reply,
  type Session,
  scoreOf,
  timeOf,
  userOf,
} from '../operations.ts'

/** The maximum time from the first to the last write of a login. */
export const MAX_LOGIN_SECONDS = 60

/**
 * Logs a user in. The entry in the user's list is written before the session, so that every
 * session can be found and revoked. A partial failure leaves an entry without a session, which reading the list
 * removes. Returns the number of entries in the list.
 *
 * Keys: sessions of the user, recent, login, sessions of the user.
 */
export function login(
  keys: Keys,
  input: { id: string; user: string },
  now: number,
): NamedOperation<number, 'entry' | 'seen' | 'user' | 'count'> {
  const { id, user } = input
  const list = keys.sessions(user)
  return namedOperation(
    {
      entry: ['ZADD', list, scoreOf(now), id],
      seen: ['ZADD', keys.recent(id), scoreOf(now), id],
      user: ['HSET', keys.login(id), id, user],
      count: ['ZCARD', list],
    },
    ({ count }) => Number(count),
    { mergeable: true, readOnly: false },
  )
}

const COMMANDS_PER_SESSION = 5

/**
 * Ends sessions. Returns the user of each session that existed, `GUEST` for a guest session. Removes the login
 * first, so that a view or refresh in between cannot bring the session back.
 *
 * Keys of each: login, recent, viewed, data.
 */
export function endSessions(keys: Keys, ids: readonly string[]): Operation<(string | undefined)[]> {
  return {
    commands: ids.flatMap((id): Command[] => [
      ['HGET', keys.login(id), id],
      ['HDEL', keys.login(id), id],
      ['ZREM', keys.recent(id), id],
      ...recordsOf(keys, id).map((key): Command => ['UNLINK', key]),
    ]),
    readOnly: false,
    read: (replies) =>
      ids.map((_, index) => {
        const [user, removed] = replies.slice(COMMANDS_PER_SESSION * index)
        return removed === 1 && typeof user === 'string' ? user : undefined
      }),
  }
}

/** Removes sessions from a user's list. Keys: sessions of the user. */
export function forgetSessions(keys: Keys, user: string, ids: readonly string[]): Operation<void> {
  return {
    commands: [['ZREM', keys.sessions(user), ...ids]],
    readOnly: false,
    read: () => undefined,
  }
}

/** An entry of a user's list. */
export interface Entry {
  id: string
  /** The login time exactly as stored in Redis: Unix seconds with fraction. */
  score: number
}

/** The order of a user's list: latest login first, then highest id. */
export const inListOrder = (a: Entry, b: Entry): number =>
  b.score - a.score || (a.id < b.id ? 1 : -1)

const entries = (command: Command): Operation<Entry[]> => ({
  commands: [command],
  readOnly: true,
  read: ([reply]) => memberScores(reply).map(([id, score]) => ({ id, score })),
})

/**
 * At most `count` entries of a user's list with a login time of at most `from`: latest login first, then highest
 * id. Keys: sessions of the user.
 */
export function newestEntries(
  keys: Keys,
  user: string,
  { from, count }: { from: number | undefined; count: number },
): Operation<Entry[]> {
  const range = [from ?? '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, count, 'WITHSCORES'] as const
  return entries(['ZRANGE', keys.sessions(user), ...range])
}

/** At most `count` entries of a user's list, earliest login first. Keys: sessions of the user. */
export function oldestEntries(keys: Keys, user: string, count: number): Operation<Entry[]> {
  return entries(['ZRANGE', keys.sessions(user), 0, count - 1, 'WITHSCORES'])
}

/** The user of each session, and when it was last seen. Keys of each part: recent, login. */
export function statesOf(keys: Keys, ids: readonly string[]): Operation<(Session | undefined)[]> {
  const groups = [...Map.groupBy(ids, (id) => keys.login(id))]
  return {
    commands: groups.flatMap(([login, members]): Command[] => [
      ['ZMSCORE', keys.recent(members[0] ?? ''), ...members],
      ['HMGET', login, ...members],
    ]),
    readOnly: true,
    read(replies) {
      const states = new Map<string, Session>()
      groups.forEach(([, members], place) => {
        const [times, users] = replies.slice(2 * place) as [readonly Reply[], readonly Reply[]]
        members.forEach((id, index) => {
          const user = userOf(users[index])
          if (user !== undefined) states.set(id, { user, lastSeenAt: timeOf(times[index]) })
        })
      })
      return ids.map((id) => states.get(id))
    },
  }
}
