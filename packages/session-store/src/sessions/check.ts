import {
  type Command,
  memberScores,
  type Operation,
  type Reply,
  scoreOf,
  timeOf,
  writing,
} from '../command.ts'
import { LABEL } from '../data/encode.ts'
import { requireSession } from '../errors.ts'
import type { Keys } from '../keys.ts'
import type { Settings } from '../options.ts'

/** The value of a guest session in the hash `login`. */
export const GUEST = ''

/** The user for a value of the hash `login`: null for a guest session, undefined without a session. */
export const userOf = (reply: Reply | undefined): string | null | undefined => {
  if (typeof reply !== 'string') return undefined
  return reply === GUEST ? null : reply
}

export interface Session {
  /** Null for a guest session. */
  user: string | null
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

export const isIdle = (
  { now, idleSeconds }: Settings,
  { lastSeenAt }: { lastSeenAt: number },
): boolean => lastSeenAt < now() - 1000 * idleSeconds

/** @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session has ended or is idle. */
export const requireActive = <Found extends Session>(
  settings: Settings,
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

/** Refreshes a session; `XX` creates none. Keys: recent. */
export const touchSession = (keys: Keys, id: string, now: number): Operation<void> =>
  writing(['ZADD', keys.recent(id), 'XX', scoreOf(now), id])

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
 * of each part: recent, login; with labels also data.
 */
export function statesOf(
  keys: Keys,
  ids: readonly string[],
  withLabels = false,
): Operation<((Session & { label?: string }) | undefined)[]> {
  const groups = [...Map.groupBy(ids, (id) => keys.login(id))]
  const labels = withLabels ? ids.map((id): Command => ['HGET', keys.data(id), LABEL]) : []
  return {
    commands: [
      ...groups.flatMap(([login, members]): Command[] => [
        ['ZMSCORE', keys.recent(members[0] ?? ''), ...members],
        ['HMGET', login, ...members],
      ]),
      ...labels,
    ],
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
      return ids.map((id, index) => {
        const [state, label] = [states.get(id), replies[2 * groups.length + index]]
        return state && typeof label === 'string' ? { ...state, label } : state
      })
    },
  }
}
