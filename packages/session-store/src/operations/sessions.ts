import {
  type Command,
  memberScores,
  type Operation,
  type Reply,
  scoreOf,
  timeOf,
} from '../command.ts'
import { requireSession } from '../errors.ts'
import { type Keys, recordsOf } from '../keys.ts'
import { LABEL } from './encode-fields.ts'
import { addToList } from './lists.ts'

/** The value of a guest session in the hash `login`. */
export const GUEST = ''

/** The user for a value of the hash `login`: null for a guest session, undefined without a session. */
export const userOf = (reply: Reply | undefined): string | null | undefined => {
  if (typeof reply !== 'string') return undefined
  return reply === GUEST ? null : reply
}

/** The maximum time from the first to the last write of a login. */
export const MAX_LOGIN_SECONDS = 60

export interface NewLogin {
  id: string
  user: string
  /** Undefined or empty: none. */
  label?: string | undefined
}

/**
 * Logs a user in. The entry in the user's list is written before the session, so that every
 * session can be found and revoked. A partial failure leaves an entry without a session, which reading the list
 * removes, and records without a session, which stay until a sweep with `sweepKeys`. Returns the number of entries in
 * the list.
 *
 * Keys: sessions of the user, recent, those of `records`, data, login, sessions of the user.
 *
 * @param records Commands that write the session's views and data.
 */
export function login(
  keys: Keys,
  { id, user, label }: NewLogin,
  now: number,
  records: readonly Command[] = [],
): Operation<number> {
  const list = keys.sessions(user)
  return {
    commands: [
      addToList(keys, user, scoreOf(now), id),
      ['ZADD', keys.recent(id), scoreOf(now), id],
      ...records,
      ...(label ? [['HSET', keys.data(id), LABEL, label] as const] : []),
      ['HSET', keys.login(id), id, user],
      ['ZCARD', list],
    ],
    readOnly: false,
    read: (replies) => Number(replies.at(-1)),
  }
}

export interface Session {
  /** Null for a guest session. */
  user: string | null
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

export const isIdle = (
  { now, idleSeconds }: { now(): number; idleSeconds: number },
  { lastSeenAt }: { lastSeenAt: number },
): boolean => lastSeenAt < now() - 1000 * idleSeconds

/** @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session has ended or is idle. */
export const requireActive = <Found extends Session>(
  settings: { now(): number; idleSeconds: number },
  session: Found | undefined,
): Found => requireSession(session && !isIdle(settings, session) ? session : undefined)

/** The user of a session, and its time of last use. Keys: recent, login. */
export function checkToken(keys: Keys, id: string): Operation<Session | undefined> {
  return {
    commands: [
      ['ZSCORE', keys.recent(id), id],
      ['HGET', keys.login(id), id],
    ],
    readOnly: true,
    read([lastSeen, reply]) {
      const user = userOf(reply)
      return user === undefined ? undefined : { user, lastSeenAt: timeOf(lastSeen) }
    },
  }
}

/** Refreshes a session; `XX` creates none. Reads the login last, as `recordView` does. Keys: recent, login. */
export function touchSession(keys: Keys, id: string, now: number): Operation<Session | undefined> {
  return {
    commands: [
      ['ZADD', keys.recent(id), 'XX', scoreOf(now), id],
      ['HGET', keys.login(id), id],
    ],
    readOnly: false,
    read([, reply]) {
      const user = userOf(reply)
      return user === undefined ? undefined : { user, lastSeenAt: now }
    },
  }
}

/** The ids of the most recently seen sessions, newest first. Keys: recent. */
export function recentIds(
  keys: Keys,
  limit: number,
): Operation<{ id: string; lastSeenAt: number }[]> {
  return {
    commands: keys
      .parts()
      .map(({ recent }): Command => ['ZREVRANGE', recent, 0, limit - 1, 'WITHSCORES']),
    readOnly: true,
    read: (replies) =>
      replies
        .flatMap(memberScores)
        .map(([id, score]) => ({ id, lastSeenAt: timeOf(score) }))
        .sort((a, b) => b.lastSeenAt - a.lastSeenAt)
        .slice(0, limit),
  }
}

/**
 * The state of each session: undefined for one that is gone, 0 as `lastSeenAt` of one without a last-seen time. Keys
 * of each part: recent, login.
 */
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

/** `statesOf` with the label of each login. Keys: also data. */
export function labelledStatesOf(
  keys: Keys,
  ids: readonly string[],
): Operation<((Session & { label?: string }) | undefined)[]> {
  const states = statesOf(keys, ids)
  const labels = ids.map((id): Command => ['HGET', keys.data(id), LABEL])
  return {
    commands: [...states.commands, ...labels],
    readOnly: true,
    read: (replies) =>
      states.read(replies).map((state, index) => {
        const label = replies[states.commands.length + index]
        return state && typeof label === 'string' ? { ...state, label } : state
      }),
  }
}

/** Tells all processes that a session has ended (`onSessionEnded`). The channel has the name of the key: login. */
export const publishEnd = (keys: Keys, id: string): Command => ['PUBLISH', keys.login(id), id]

/** Which sessions a script ends. Times in Unix seconds. */
export interface EndIf {
  /**
   * A login that began earlier is complete or has failed. Without `oldest`, the script ends halves: a login without a
   * last-seen time, or remains without a login.
   */
  settledBefore: number
  /** Ends sessions that are idle, or beyond the number to keep. Skips those that were refreshed since they were read. */
  oldest?: { idleBefore: number; keep: number; seen: readonly number[] }
}

/**
 * KEYS: login, recent, then viewed and data of each session. ARGV: a JSON object: `ids`, and perhaps the properties of
 * `EndIf`. Returns for each the user; '' for a guest, and for remains without a login; nil if nothing ended.
 */
const END = `-- end sessions
local asked = cjson.decode(ARGV[1])
local ids, settledBefore, oldest, users = asked.ids, asked.settledBefore, asked.oldest, {}
local owners = redis.call('HMGET', KEYS[1], unpack(ids))
local scores = redis.call('ZMSCORE', KEYS[2], unpack(ids))
local surplus = oldest and redis.call('ZCARD', KEYS[2]) - oldest.keep
for i, id in ipairs(ids) do
  local owner, score, ends = owners[i], tonumber(scores[i]), true
  if settledBefore then
    local settled = owner or (score or 0) < settledBefore
    if oldest then
      ends = settled and score == oldest.seen[i] and (score < oldest.idleBefore or surplus > 0)
    else
      ends = settled and not (owner and score)
    end
  end
  users[i] = ends and (owner or settledBefore and '') or false
  if ends then
    surplus = surplus and surplus - 1
    redis.call('HDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('UNLINK', KEYS[2 * i + 1], KEYS[2 * i + 2])
    redis.call('PUBLISH', KEYS[1], id)
  end
end
return users`

/**
 * Ends sessions. Returns the user of each session that existed, `GUEST` for a guest session or for remains.
 *
 * One script for all sessions that share the key login: no failure leaves a part of a session, or ends one without
 * telling those that wait for its end. A concurrent view or refresh cannot bring a session back.
 *
 * Keys of each: login, recent, viewed, data.
 *
 * @param endIf Default: ends each of them. With `oldest`, all share the key login.
 */
export function endSessions(
  keys: Keys,
  ids: readonly string[],
  endIf?: EndIf,
): Operation<(string | undefined)[]> {
  const groups = [...Map.groupBy(ids, (id) => keys.login(id))]
  return {
    commands: groups.map(([login, members]): Command => {
      const records = members.flatMap((id) => recordsOf(keys, id))
      const own = [login, keys.recent(members[0] ?? ''), ...records]
      return ['EVAL', END, own.length, ...own, JSON.stringify({ ids: members, ...endIf })]
    }),
    readOnly: false,
    read(replies) {
      const users = new Map(
        groups.flatMap(([, members], place) =>
          members.map((id, index) => [id, (replies[place] as readonly Reply[])[index]] as const),
        ),
      )
      return ids.map((id) => (users.get(id) ?? undefined) as string | undefined)
    },
  }
}
