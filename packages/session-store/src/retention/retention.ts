import { type Command, memberScores, type Operation, type Reply } from '../command.ts'
import { type Keys, recordsOf, type SessionsPart } from '../keys.ts'
import { forgetSessions } from '../operations/lists.ts'

/** An ended session and its user; no user if only leftovers were found. */
export interface EndedSession {
  id: string
  user: string | undefined
}

/** The least recently seen sessions of one part, oldest first. */
interface OldestOfPart {
  readonly part: SessionsPart
  /** The number of sessions in the part. */
  readonly size: number
  readonly oldest: readonly { id: string; lastSeen: number }[]
}

/** The `limit` oldest sessions of each part. Keys: recent of all parts. */
export function oldestSessions(keys: Keys, limit: number): Operation<OldestOfPart[]> {
  const parts = keys.parts()
  return {
    commands: parts.flatMap(({ recent }): Command[] => [
      ['ZCARD', recent],
      ['ZRANGE', recent, 0, limit - 1, 'WITHSCORES'],
    ]),
    readOnly: true,
    read: (replies) =>
      parts.map((part, index) => ({
        part,
        size: Number(replies[2 * index]),
        oldest: memberScores(replies[2 * index + 1]).map(([id, lastSeen]) => ({ id, lastSeen })),
      })),
  }
}

/** The sessions of one part to end, as they were read. */
interface Eviction {
  readonly part: SessionsPart
  /** How many sessions of the part to keep, unless they are idle. */
  readonly keep: number
  readonly sessions: readonly { id: string; lastSeen: number }[]
}

/** Times in Unix seconds. */
interface EvictionTimes {
  /** A session that was last seen before this time is idle. */
  idleBefore: number
  /** A login that started before this time is complete or has failed. */
  settledBefore: number
}

interface EvictionLimits {
  maxSessions: number
  idleBefore: EvictionTimes['idleBefore']
  /** Maximum number of sessions to choose. */
  batchSize: number
}

/**
 * Chooses the sessions to end: the oldest of all parts first, so that both key layouts end the same sessions.
 * Skips a session as long as a part may have an older session that was not read.
 */
export function chooseEvictions(
  parts: readonly OldestOfPart[],
  { maxSessions, idleBefore, batchSize }: EvictionLimits,
): Eviction[] {
  const surplus = parts.reduce((sum, { size }) => sum + size, 0) - maxSessions
  const readUpTo = Math.min(
    ...parts
      .filter(({ size, oldest }) => oldest.length < size)
      .map(({ oldest }) => oldest.at(-1)?.lastSeen ?? Number.NEGATIVE_INFINITY),
  )
  const chosen = parts
    .flatMap(({ part, oldest }) => oldest.map((session) => ({ part, ...session })))
    .filter(({ lastSeen }) => lastSeen <= readUpTo)
    .sort((a, b) => a.lastSeen - b.lastSeen)
    .filter(({ lastSeen }, rank) => rank < surplus || lastSeen < idleBefore)
    .slice(0, batchSize)
  const byPart = Map.groupBy(chosen, ({ part }) => part)
  return parts.flatMap(({ part, size }) => {
    const sessions = byPart.get(part)
    return sessions ? [{ part, keep: size - sessions.length, sessions }] : []
  })
}

/** The end of a script: ends the sessions of `doomed`, whose own keys are in `records`. */
export const END_DOOMED = `if #doomed > 0 then
  redis.call('HDEL', KEYS[1], unpack(doomed))
  redis.call('ZREM', KEYS[2], unpack(doomed))
  if #records > 0 then redis.call('UNLINK', unpack(records)) end
  for _, id in ipairs(doomed) do redis.call('PUBLISH', KEYS[1], id) end
end
return users`

/**
 * KEYS: login, recent, and the viewed and data keys of each session. ARGV: a JSON object: `idleBefore`,
 * `settledBefore`, `keep` (number of sessions), `ids`, and `seen`, the last-seen time of each. Returns the user of each
 * ended session, nil for each that stays.
 */
const EVICT = `-- evict
local chosen = cjson.decode(ARGV[1])
local doomed, records, users = {}, {}, {}
local owners = redis.call('HMGET', KEYS[1], unpack(chosen.ids))
local scores = redis.call('ZMSCORE', KEYS[2], unpack(chosen.ids))
local surplus = redis.call('ZCARD', KEYS[2]) - chosen.keep
for i, id in ipairs(chosen.ids) do
  local score = tonumber(scores[i])
  users[i] = false
  local settled = owners[i] or (score and score < chosen.settledBefore)
  if settled and score == chosen.seen[i] and (score < chosen.idleBefore or surplus > 0) then
    surplus = surplus - 1
    doomed[#doomed + 1] = id
    records[#records + 1], records[#records + 2] = KEYS[2 * i + 1], KEYS[2 * i + 2]
    users[i] = owners[i] or ''
  end
end
${END_DOOMED}`

/**
 * Ends the chosen sessions of each part atomically. Keeps a session that was refreshed since it was read, and one
 * that is not idle if enough others have ended meanwhile. So a worker that acts late on old readings does no harm.
 *
 * A concurrent page view either finds the session gone, or refreshes it before this script. A concurrent
 * `updateToken` either refreshes an idle session before, or creates it again after it was ended. A session without
 * a login is a login in progress until `settledBefore`. If the maximum ends a session between the two commands of
 * an `updateToken`, only its login may remain: `checkToken` rejects it, and the sweep removes it.
 *
 * Keys of each part: login, recent, viewed and data of each session. The users' lists still name the sessions.
 */
export function evictSessions(
  keys: Keys,
  evictions: readonly Eviction[],
  { idleBefore, settledBefore }: EvictionTimes,
): Operation<EndedSession[]> {
  return {
    commands: evictions.map(({ part, keep, sessions }): Command => {
      const own = [part.login, part.recent, ...sessions.flatMap(({ id }) => recordsOf(keys, id))]
      const chosen = {
        idleBefore: Math.max(0, idleBefore), // JSON has no infinity
        settledBefore,
        keep,
        ids: sessions.map(({ id }) => id),
        seen: sessions.map(({ lastSeen }) => lastSeen),
      }
      return ['EVAL', EVICT, own.length, ...own, JSON.stringify(chosen)]
    }),
    readOnly: false,
    read: (replies) =>
      evictions.flatMap(({ sessions }, index) =>
        readEnded(
          sessions.map(({ id }) => id),
          replies[index],
        ),
      ),
  }
}

/** Parses the reply of such a script: the user of each ended session, '' if unknown. */
export function readEnded(ids: readonly string[], reply: Reply | undefined): EndedSession[] {
  const users = Array.isArray(reply) ? (reply as readonly Reply[]) : []
  return ids.flatMap((id, index) => {
    const user = users[index]
    return typeof user === 'string' ? [{ id, user: user === '' ? undefined : user }] : []
  })
}

/** Removes ended sessions from their users' lists. Keys: sessions of each user. */
export function forgetEnded(keys: Keys, ended: readonly EndedSession[]): Operation<void> {
  const byUser = Map.groupBy(ended, ({ user }) => user)
  return {
    commands: [...byUser].flatMap(([user, sessions]): readonly Command[] => {
      if (user === undefined) return []
      const ids = sessions.map(({ id }) => id)
      return forgetSessions(keys, user, ids).commands
    }),
    readOnly: false,
    read: () => undefined,
  }
}
