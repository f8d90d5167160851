import { type Command, memberScores, type Operation } from '../command.ts'
import type { Keys } from '../keys.ts'

/** An entry of a user's list. */
export interface Entry {
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

/** At most `count` entries of a user's list, latest login first. Keys: sessions of the user. */
export const newestEntries = (keys: Keys, user: string, count: number): Operation<Entry[]> => ({
  commands: [['ZRANGE', keys.sessions(user), 0, count - 1, 'REV', 'WITHSCORES']],
  readOnly: true,
  read: ([reply]) => memberScores(reply).map(([id, score]) => ({ id, score })),
})

/** Removes sessions from a user's list. Keys: sessions of the user. */
export function forgetSessions(keys: Keys, user: string, ids: readonly string[]): Operation<void> {
  return {
    commands: [['ZREM', keys.sessions(user), ...ids]],
    readOnly: false,
    read: () => undefined,
  }
}
