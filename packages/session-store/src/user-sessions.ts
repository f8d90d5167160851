import type { Keys } from './keys.ts'
import { type Command, memberScores, type Update, updateToken } from './updates.ts'

/** How long a login may take to write both its entry in the user's list and the session. */
export const LOGIN_MAY_TAKE_SECONDS = 60

/**
 * Logs a user in: `updateToken`, and before it the entry in the user's own list, so that a session that
 * exists can be found and revoked. A failure in between leaves an entry without a session, which
 * listing removes.
 *
 * Keys: sessions of the user, recent, login.
 */
export function login(keys: Keys, input: { id: string; user: string }, now: number): Update<void> {
  const update = updateToken(keys, input, now)
  return {
    ...update,
    commands: [['ZADD', keys.sessions(input.user), now, input.id], ...update.commands],
  }
}

/**
 * Ends sessions; reads the user of each that there was. What makes a session one goes first, so that
 * no view or refresh that comes in between brings it back.
 *
 * Keys of each: login, recent, viewed.
 */
export function endSessions(keys: Keys, ids: readonly string[]): Update<(string | undefined)[]> {
  return {
    commands: ids.flatMap((id): Command[] => [
      ['HGET', keys.login(id), id],
      ['HDEL', keys.login(id), id],
      ['ZREM', keys.recent(id), id],
      ['UNLINK', keys.viewed(id)],
    ]),
    readOnly: false,
    read: (replies) =>
      ids.map((_, index) => {
        const [user, removed] = replies.slice(4 * index)
        return removed === 1 && typeof user === 'string' ? user : undefined
      }),
  }
}

/** Takes sessions out of a user's list. Keys: sessions of the user. */
export function forgetSessions(keys: Keys, user: string, ids: readonly string[]): Update<void> {
  return {
    commands: [['ZREM', keys.sessions(user), ...ids]],
    readOnly: false,
    read: () => undefined,
  }
}

/** A user's list as it is written down. Keys: sessions of the user. */
export function listedSessions(
  keys: Keys,
  user: string,
): Update<{ id: string; loggedInAt: number }[]> {
  return {
    commands: [['ZREVRANGE', keys.sessions(user), 0, -1, 'WITHSCORES']],
    readOnly: true,
    read: ([reply]) => memberScores(reply).map(([id, loggedInAt]) => ({ id, loggedInAt })),
  }
}

/** Who each session belongs to and when it was last seen. Keys of each: login, recent. */
export function statesOf(
  keys: Keys,
  ids: readonly string[],
): Update<({ user: string; lastSeen: number } | undefined)[]> {
  return {
    commands: ids.flatMap((id): Command[] => [
      ['ZSCORE', keys.recent(id), id],
      ['HGET', keys.login(id), id],
    ]),
    readOnly: true,
    read: (replies) =>
      ids.map((_, index) => {
        const [lastSeen, user] = replies.slice(2 * index)
        return typeof user === 'string' ? { user, lastSeen: Number(lastSeen ?? 0) } : undefined
      }),
  }
}
