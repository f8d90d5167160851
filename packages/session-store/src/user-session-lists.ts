import type { Keys } from './keys.ts'
import type { Strategy } from './strategy.ts'
import {
  endSessions,
  forgetSessions,
  LOGIN_MAY_TAKE_SECONDS,
  listedSessions,
  statesOf,
} from './user-sessions.ts'

export interface ListedSession {
  /** Names the session, for `revokeSession`; it is no credential. */
  id: string
  /** Unix seconds with fraction. */
  loggedInAt: number
  /** Unix seconds with fraction. */
  lastSeen: number
}

/**
 * Sessions that are looked at or ended in one round trip. Of 20,000 in one, this process was busy for more
 * than a second (2026-11-21), and answered nobody else.
 */
const AT_ONCE = 100

/** The lists of each user's sessions, which `login` writes and which mend themselves when read. */
export function userSessionLists(parts: { strategy: Strategy; keys: Keys; now: () => number }) {
  const { strategy, keys, now } = parts

  /**
   * Ends sessions of one user and takes those that there were out of the user's list. Returns how many
   * there were.
   */
  async function end(ids: readonly string[]): Promise<number> {
    let ended = 0
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const some = ids.slice(from, from + AT_ONCE)
      const users = await strategy.run(endSessions(keys, some))
      const gone = some.filter((_, index) => users[index] !== undefined)
      const user = users.find((user) => user !== undefined)
      // A login that is just being written keeps its entry, or nobody would find it again.
      if (user !== undefined) await strategy.run(forgetSessions(keys, user, gone))
      ended += gone.length
    }
    return ended
  }

  const statesOfSome = (ids: readonly string[]) => strategy.run(statesOf(keys, ids))

  return {
    end,

    /** Ends all sessions in a user's list. Returns how many there were. */
    async endAll(user: string): Promise<number> {
      const listed = await strategy.run(listedSessions(keys, user))
      return await end(listed.map(({ id }) => id))
    },

    /** A user's sessions, the latest login first. Entries without a session are removed. */
    async of(user: string): Promise<ListedSession[]> {
      const listed = await strategy.run(listedSessions(keys, user))
      if (listed.length === 0) return []
      const ids = listed.map(({ id }) => id)
      const states: Awaited<ReturnType<typeof statesOfSome>> = []
      for (let from = 0; from < ids.length; from += AT_ONCE) {
        states.push(...(await statesOfSome(ids.slice(from, from + AT_ONCE))))
      }
      const there: ListedSession[] = []
      const stale: string[] = []
      listed.forEach((entry, index) => {
        const state = states[index]
        if (state?.user === user) there.push({ ...entry, lastSeen: state.lastSeen })
        else if (entry.loggedInAt < now() - LOGIN_MAY_TAKE_SECONDS) stale.push(entry.id)
      })
      if (stale.length > 0) await strategy.run(forgetSessions(keys, user, stale))
      return there
    },
  }
}
