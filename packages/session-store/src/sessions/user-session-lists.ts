import type { Keys } from '../keys.ts'
import type { Runner } from '../runner.ts'
import { scoreOf, timeOf } from '../updates.ts'
import {
  type Entry,
  endSessions,
  forgetSessions,
  LOGIN_MAY_TAKE_SECONDS,
  newestEntries,
  oldestEntries,
  statesOf,
} from './user-sessions.ts'

export interface ListedSession {
  /** Names the session, for `revokeSession`; it is no credential. */
  id: string
  /** Milliseconds since 1970. */
  loggedInAt: number
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

interface Range {
  /** How many entries of the list to look at. */
  limit: number
  /** Begin after this entry, even if it has been removed; undefined: begin with the latest. */
  after?: Entry | undefined
}

/**
 * Entries of a list that one round trip reads or ends. 20,000 in one round trip kept the process busy for
 * more than a second (2026-11-21).
 */
export const PAGE = 100

/** The lists of each user's sessions, which `login` writes and which mend themselves when read. */
export function userSessionLists(parts: {
  runner: Pick<Runner, 'run'>
  keys: Keys
  now: () => number
}) {
  const { runner, keys, now } = parts

  /** Ends sessions of one user. Returns the ids of those that there were. */
  async function end(ids: readonly string[]): Promise<string[]> {
    const users = await runner.run(endSessions(keys, ids))
    const ended = ids.filter((_, index) => users[index] !== undefined)
    const user = users.find((user) => user !== undefined)
    // The sessions have ended; listing removes the entries, too.
    if (user) await runner.run(forgetSessions(keys, user, ended)).catch(() => undefined)
    return ended
  }

  /**
   * The entries that have a session of the user. Entries without one are removed, unless the login may
   * still be being written: its session could not be found afterwards.
   */
  async function existing(user: string, entries: readonly Entry[]): Promise<ListedSession[]> {
    if (entries.length === 0) return []
    const ids = entries.map(({ id }) => id)
    const states = await runner.run(statesOf(keys, ids))
    const sessions: ListedSession[] = []
    const stale: string[] = []
    entries.forEach((entry, index) => {
      const state = states[index]
      if (state?.user === user) {
        const { id, score } = entry
        sessions.push({ id, loggedInAt: timeOf(score), lastSeenAt: state.lastSeenAt })
      } else if (entry.score < scoreOf(now()) - LOGIN_MAY_TAKE_SECONDS) stale.push(entry.id)
    })
    if (stale.length > 0) await runner.run(forgetSessions(keys, user, stale))
    return sessions
  }

  async function endEntries(user: string, entries: readonly Entry[]): Promise<number> {
    const ids = (await existing(user, entries)).map(({ id }) => id)
    return ids.length === 0 ? 0 : (await end(ids)).length
  }

  /** The next entries of a user's list; `last` is the last of them if others follow. */
  async function read(user: string, { limit, after }: Range) {
    // Two more than `limit`: the entry at `after`, and one that shows whether others follow. The loop
    // repeats only if more entries than that have the login time of `after`.
    for (let count = limit + 2; ; count *= 2) {
      const from = after?.score
      const found = await runner.run(newestEntries(keys, user, { from, count }))
      const next = after ? found.filter((entry) => isAfter(entry, after)) : found
      if (next.length <= limit && found.length === count) continue
      const entries = next.slice(0, limit)
      return { entries, last: next.length > limit ? entries.at(-1) : undefined }
    }
  }

  return {
    /** Ends a session of any user. Returns whether there was one. */
    end: async (id: string): Promise<boolean> => (await end([id])).length === 1,

    /** Ends all sessions in a user's list, page by page. Returns how many there were. */
    async endAll(user: string): Promise<number> {
      let ended = 0
      let after: Entry | undefined
      do {
        const { entries, last } = await read(user, { limit: PAGE, after })
        ended += await endEntries(user, entries)
        after = last
      } while (after !== undefined)
      return ended
    },

    /**
     * Ends the oldest sessions of a user, at most one page of them.
     *
     * @param count How many.
     * @param except The id of a session that stays.
     */
    async endOldest(user: string, count: number, except: string): Promise<void> {
      const entries = await runner.run(oldestEntries(keys, user, Math.min(count, PAGE)))
      await endEntries(
        user,
        entries.filter(({ id }) => id !== except),
      )
    },

    /**
     * The user's sessions among the next `limit` entries of the list, the latest login first. `last` is
     * where the next page begins, if there is one.
     */
    async page(user: string, range: Range) {
      const { entries, last } = await read(user, range)
      return { sessions: await existing(user, entries), last }
    },
  }
}

/** Whether an entry comes after another: the latest login first, then the highest id. */
const isAfter = (entry: Entry, other: Entry): boolean =>
  entry.score < other.score || (entry.score === other.score && entry.id < other.id)
