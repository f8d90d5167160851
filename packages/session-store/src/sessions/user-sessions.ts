import { scoreOf, timeOf } from '../command.ts'
import { StoreError } from '../errors.ts'
import { type Entry, forgetSessions, inListOrder, newestEntries } from '../operations/lists.ts'
import {
  endSessions,
  labelledStatesOf,
  MAX_LOGIN_SECONDS,
  statesOf,
} from '../operations/sessions.ts'
import type { Settings } from '../options.ts'
import type { Runner } from '../redis/runner.ts'

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

/**
 * Maximum number of entries that one round trip reads or ends. With 20,000, the process was busy for more than a
 * second (2026-11-21).
 */
const STEP_SIZE = 100

/** Logins of several processes within this time may be concurrent. A larger difference comes from their clocks. */
const CONCURRENT_MS = 1_000

/**
 * Adds up the sessions that the steps of a call have ended.
 *
 * @throws StoreError If a step fails after sessions have or may have ended: with `mayHaveWritten` and `retrySafe`,
 *   because a repeated call ends the others. Otherwise the error of the step.
 */
export async function totalEnded(steps: AsyncIterable<number>): Promise<number> {
  let total = 0
  try {
    for await (const ended of steps) total += ended
  } catch (cause) {
    if (!(cause instanceof StoreError) || cause.statusCode !== 503) throw cause
    const { code, mayHaveWritten } = cause
    if (total === 0 && !mayHaveWritten) throw cause
    const message = 'some sessions may have ended and others not; repeat the call to end them all'
    throw new StoreError(mayHaveWritten ? code : 'ONETRIP_OUTCOME_UNKNOWN', message, {
      retrySafe: true,
      cause,
    })
  }
  return total
}

/** The sessions in the lists of users. `login` adds entries; reading a list removes entries without a session. */
export class UserSessions {
  readonly #runner: Runner
  readonly #settings: Settings
  /** Runs of `keepLatest`, by user. */
  readonly #runs = new Map<string, { readonly own: Set<string>; readonly done: Promise<void> }>()

  constructor(runner: Runner, settings: Settings) {
    this.#runner = runner
    this.#settings = settings
  }

  /**
   * Ends a session of any user. Returns whether it existed. Does not wait for the removal of its entry: reading the list
   * would remove it, too.
   */
  async end(id: string): Promise<boolean> {
    const { keys } = this.#settings
    const [user] = await this.#runner.run(endSessions(keys, [id]))
    if (user) this.#runner.run(forgetSessions(keys, user, [id])).catch(() => undefined)
    return user !== undefined
  }

  /**
   * Ends all sessions in a user's list. Yields the number of sessions ended in each step; see `totalEnded`.
   *
   * @param except The id of a session to keep.
   */
  async *endAll(user: string, except?: string): AsyncGenerator<number> {
    for await (const entries of this.#steps(user)) {
      const others = entries.filter(({ id }) => id !== except)
      yield await this.#endEntries(user, others)
    }
  }

  /**
   * Ends the sessions of a user beyond the maximum of latest logins, at most `STEP_SIZE` for each login. Logins at the same
   * time share one run, so that they do not all end the same sessions.
   *
   * @param id The new session.
   */
  async keepLatest(user: string, id: string): Promise<void> {
    const run = this.#runs.get(user)
    if (run) {
      run.own.add(id) // adds a step to the run
      return await run.done
    }
    const own = new Set([id])
    const steps = async () => {
      for (let step = 0; step < own.size; step++) {
        const logins = own.size
        if ((await this.#endSurplus(user, own)) === 0 && own.size === logins) return
      }
    }
    const done = steps().finally(() => this.#runs.delete(user))
    this.#runs.set(user, { own, done })
    await done
  }

  /** The sessions in a user's list, latest login first. */
  async sessionsOf(user: string): Promise<ListedSession[]> {
    const sessions: ListedSession[] = []
    for await (const entries of this.#steps(user)) {
      sessions.push(...(await this.#existing(user, entries, labelledStatesOf)))
    }
    return sessions
  }

  async #endEntries(user: string, entries: readonly Entry[]): Promise<number> {
    return await this.#endListed(user, await this.#existing(user, entries))
  }

  async #endListed(user: string, sessions: readonly ListedSession[]): Promise<number> {
    const { keys } = this.#settings
    const ids = sessions.map(({ id }) => id)
    if (ids.length === 0) return 0
    const users = await this.#runner.run(endSessions(keys, ids))
    // The sessions have ended, even if this fails: reading the list removes their entries.
    await this.#runner.run(forgetSessions(keys, user, ids)).catch(() => undefined)
    return users.filter((user) => user !== undefined).length
  }

  /**
   * Ends the sessions beyond the maximum of latest logins, at most `STEP_SIZE`. Returns their number. As a session ends
   * only after that many later ones were found, runs of several processes never end too many.
   *
   * @param own New sessions. Those that seem older than others, because the clock of this process is behind, count as
   *   the latest.
   */
  async #endSurplus(user: string, own: Set<string>): Promise<number> {
    const { keys, maxSessionsPerUser: max } = this.#settings
    const range = { from: undefined, count: max + STEP_SIZE }
    const entries = await this.#runner.run(newestEntries(keys, user, range))
    const sessions = await this.#existing(user, entries)
    const latest = (sessions[0]?.loggedInAt ?? 0) - CONCURRENT_MS
    const [behind = [], others = []] = [true, false].map((wanted) =>
      sessions.filter(({ id, loggedInAt }) => (own.has(id) && loggedInAt < latest) === wanted),
    )
    return await this.#endListed(user, [...behind, ...others].slice(max))
  }

  /**
   * Returns the entries that have a session of the user. Removes entries without a session, unless the login may
   * be in progress: nothing else would lead to its session.
   */
  async #existing(
    user: string,
    entries: readonly Entry[],
    read: typeof labelledStatesOf = statesOf,
  ): Promise<ListedSession[]> {
    if (entries.length === 0) return []
    const { keys, now } = this.#settings
    const ids = entries.map(({ id }) => id)
    const states = await this.#runner.run(read(keys, ids))
    const settledBefore = scoreOf(now()) - MAX_LOGIN_SECONDS
    const stale = entries.filter(
      ({ score }, index) => states[index]?.user !== user && score < settledBefore,
    )
    if (stale.length > 0) {
      const gone = stale.map(({ id }) => id)
      await this.#runner.run(forgetSessions(keys, user, gone))
    }
    return entries.flatMap(({ id, score }, index) => {
      const { user: owner, ...rest } = states[index] ?? { user: undefined }
      return owner === user && 'lastSeenAt' in rest
        ? [{ id, loggedInAt: timeOf(score), ...rest }]
        : []
    })
  }

  /** The entries of a user's list in steps of at most `STEP_SIZE`, latest login first. */
  async *#steps(user: string): AsyncGenerator<Entry[]> {
    let after: Entry | undefined
    do {
      const { entries, last } = await this.#read(user, after)
      yield entries
      after = last
    } while (after !== undefined)
  }

  /**
   * Reads the entries after this one, which may have been removed; by default the latest. `last` is the last of them if
   * more follow.
   */
  async #read(user: string, after: Entry | undefined) {
    // Two more than `STEP_SIZE`: the entry `after` itself, and one that shows whether more follow. The loop repeats
    // only if many entries have the same login time as `after`.
    for (let count = STEP_SIZE + 2; ; count *= 2) {
      const from = after?.score
      const found = await this.#runner.run(
        newestEntries(this.#settings.keys, user, { from, count }),
      )
      const next = after ? found.filter((entry) => inListOrder(entry, after) > 0) : found
      if (next.length <= STEP_SIZE && found.length === count) continue
      const entries = next.slice(0, STEP_SIZE)
      return { entries, last: next.length > STEP_SIZE ? entries.at(-1) : undefined }
    }
  }
}
