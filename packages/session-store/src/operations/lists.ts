import { type Command, memberScores, type Operation } from '../command.ts'
import type { Keys } from '../keys.ts'

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

/** Removes sessions from a user's list. Keys: sessions of the user. */
export function forgetSessions(keys: Keys, user: string, ids: readonly string[]): Operation<void> {
  return {
    commands: [['ZREM', keys.sessions(user), ...ids]],
    readOnly: false,
    read: () => undefined,
  }
}
