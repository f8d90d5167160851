import { type Attempts, countAttempts } from './attempts.ts'
import { checkSessionSlots } from './cluster.ts'
import { cursorOf, positionOf } from './cursor.ts'
import { StoreError } from './errors.ts'
import { warnOfEviction } from './eviction.ts'
import {
  checkFunctions,
  checkLimit,
  checkName,
  checkNumber,
  checkObject,
  checkOptions,
  checkString,
  checkStrings,
  MAX_TIMEOUT_MS,
} from './input.ts'
import { createJanitor, type Janitor, type JanitorOptions } from './janitor.ts'
import { documentKeys, prefixedKeys } from './keys.ts'
import type { PoolState } from './pool.ts'
import { checkRange } from './range.ts'
import type {
  NewSession,
  PageOptions,
  RecentSession,
  SessionStoreOptions,
  UserSessionPage,
} from './store-types.ts'
import { strategyFor } from './strategies/choice.ts'
import { createTokens } from './tokens.ts'
import * as updates from './updates.ts'
import { PAGE, userSessionLists } from './user-session-lists.ts'
import * as userSessions from './user-sessions.ts'

export type SessionStore = ReturnType<typeof createSessionStore>

/**
 * Logins, recent sessions and viewed items in Redis.
 *
 * Every function takes the signed token and refuses a malformed, forged or expired one without asking
 * Redis. Besides what each one names, all throw a `StoreError` of the codes that `Strategy.run` throws.
 *
 * Every argument's type and range is checked before anything is sent: `ONETRIP_INVALID_INPUT`. The
 * store runs a janitor until `close()`, unless `janitor` is `false`.
 *
 * @throws TypeError when an option has a wrong type or is out of its range, the URL of Redis or a secret
 *   is unusable, the strategy cannot work with the other options, or the janitor cannot work on a
 *   cluster with these keys.
 */
export function createSessionStore(options: SessionStoreOptions) {
  checkOptions('a session store', options)
  const { idleSeconds = 14 * 24 * 3600, maxSessionsPerUser = 100 } = options
  const { keys: layout = documentKeys, prefix = '' } = options
  checkRange('maxSessionsPerUser', maxSessionsPerUser, { least: 1, whole: true })
  checkRange('idleSeconds', idleSeconds, { least: 0.001 })
  checkFunctions('keys', layout, Object.keys(documentKeys))
  const keys = prefixedKeys(prefix, layout)
  if (options.tls !== undefined && options.url === undefined) {
    throw new TypeError('tls needs a url: a client of your own has its own options of TLS')
  }
  const tokens = createTokens(options.tokens)
  const clock = options.tokens.clock ?? Date.now
  const strategy = strategyFor(options.strategy, options)
  const now = () => clock() / 1000
  const janitors: Janitor[] = []
  const janitor = (limits: JanitorOptions = {}): Janitor => {
    checkSessionSlots(options.client, keys)
    const added = createJanitor({ strategy, keys, now, idleSeconds }, limits)
    janitors.push(added)
    return added
  }

  const known = <Found>(found: Found | undefined): Found => {
    if (found === undefined) {
      throw new StoreError('ONETRIP_UNKNOWN_SESSION', 'there is no such session (any more)')
    }
    return found
  }

  const isIdle = ({ lastSeen }: { lastSeen: number }) => lastSeen < now() - idleSeconds

  async function checkId(id: string): Promise<updates.Session> {
    const session = known(await strategy.run(updates.checkToken(keys, id)))
    return known(isIdle(session) ? undefined : session)
  }

  const lists = userSessionLists({ strategy, keys, now })
  try {
    if (options.janitor !== false) janitor(options.janitor).start()
  } catch (error) {
    // An injected client must not keep our listeners: they hide its errors.
    if (strategy !== options.strategy) void strategy.close()
    throw error
  }

  return {
    strategy: strategy.name,

    /** What the pool is doing; undefined for a strategy that has none. */
    get pool(): PoolState | undefined {
      return strategy.pool
    },

    /**
     * Logs a user in on a new token, and lists the session for `userSessions`. One round trip; up to
     * five more to end the oldest sessions if the user has more than `maxSessionsPerUser`. If ending
     * them fails, the login still succeeds, and the next one tries again.
     */
    async login(user: string): Promise<NewSession> {
      checkName('user', user)
      const token = tokens.issue()
      const id = tokens.verify(token)
      const listed = await strategy.run(userSessions.login(keys, { id, user }, now()))
      if (listed > maxSessionsPerUser) {
        await lists.endOldest(user, listed - maxSessionsPerUser, id).catch(() => undefined)
      }
      return { token, expiresAt: tokens.expiresAt(id) }
    },

    /** A new token, good for `updateToken`. Nothing is sent to Redis. */
    issueToken: (): string => tokens.issue(),

    /** When this token stops being good at the latest, in Unix milliseconds. */
    tokenExpiresAt: (token: string): number => tokens.expiresAt(tokens.verify(token)),

    /**
     * The documents' `update_token`: logs the user in on this token, and records a view of `item` if
     * there is one. One round trip. It creates the session when there is none, so it is no way to record
     * a view of somebody who may have logged out; and the session is not in the user's list, as after
     * `login`.
     */
    async updateToken(token: string, user: string, item?: string): Promise<void> {
      const id = tokens.verify(token)
      checkName('user', user)
      if (item !== undefined) checkName('item', item)
      await strategy.run(updates.updateToken(keys, { id, user, item }, now()))
    },

    /**
     * Records that the session viewed the item. One round trip.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the session is gone; nothing of the view is
     *   left then (that takes a second round trip, and if the janitor halves the counts in between,
     *   the item is counted one view too low). When the undoing fails: `ONETRIP_OUTCOME_UNKNOWN`,
     *   with its error as the cause; what is left of the view is swept by the janitor.
     */
    async recordView(token: string, item: string): Promise<updates.RecordedView> {
      const id = tokens.verify(token)
      checkName('item', item)
      const view = await strategy.run(updates.recordView(keys, { id, item }, now()))
      if (view === undefined) {
        await strategy.run(updates.undoView(keys, { id, item })).catch((cause: unknown) => {
          // Whatever became of the undoing, the view itself was written.
          throw new StoreError(
            'ONETRIP_OUTCOME_UNKNOWN',
            'there is no such session, and what its view wrote may be left behind',
            { cause },
          )
        })
      }
      return known(view)
    },

    /**
     * Who is logged in. Writes nothing. One round trip.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
     */
    async checkToken(token: string): Promise<updates.Session> {
      return await checkId(tokens.verify(token))
    },

    /**
     * As `checkToken`, and the session is seen now. Two round trips; one if it was seen less than
     * `unlessWithinSeconds` (default 0) ago, so that frequent calls need not write each time.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
     */
    async touch(token: string, unlessWithinSeconds = 0): Promise<updates.Session> {
      const id = tokens.verify(token)
      checkNumber('unlessWithinSeconds', unlessWithinSeconds, { least: 0 })
      const session = await checkId(id)
      if (session.lastSeen > now() - unlessWithinSeconds) return session
      return known(await strategy.run(updates.touchSession(keys, id, now())))
    },

    /** The newest `limit` (1 to 1,000, default 50) sessions, newest first. Two round trips. */
    async recentSessions(limit = 50): Promise<RecentSession[]> {
      checkLimit(limit)
      const recent = await strategy.run(updates.recentIds(keys, limit))
      if (recent.length === 0) return []
      const ids = recent.map(({ id }) => id)
      const users = await strategy.run(updates.usersOf(keys, ids))
      return recent.flatMap(({ lastSeen }, index) => {
        const user = users[index]
        return user === undefined ? [] : [{ user, lastSeen }]
      })
    },

    /**
     * The newest 25 items of this session, newest first.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
     */
    async viewedItems(token: string): Promise<updates.ViewedItem[]> {
      return known(await strategy.run(updates.viewedItems(keys, tokens.verify(token))))
    },

    /** The `limit` (1 to 1,000, default 10) most viewed items, most viewed first. */
    async popularItems(limit = 10): Promise<updates.PopularItem[]> {
      checkLimit(limit)
      return await strategy.run(updates.popularItems(keys, limit))
    },

    /** Ends the session and removes its views. Returns false when there was none. Two round trips. */
    async logout(token: string): Promise<boolean> {
      return await lists.end(tokens.verify(token))
    },

    /**
     * A page of the sessions of the token's user that began with `login`, the latest first. It may have
     * fewer than `limit`, even none, if some have just ended: another page follows as long as there is a
     * `nextCursor`. Logins and logouts between two pages neither skip nor repeat a session. Three round
     * trips, and one more if entries without a session were found and removed.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the token's own session is gone,
     *   `ONETRIP_INVALID_INPUT` for a cursor that no page had.
     */
    async userSessions(token: string, page: PageOptions = {}): Promise<UserSessionPage> {
      const own = tokens.verify(token)
      checkObject('page', page)
      const { limit = PAGE, cursor } = page
      checkLimit(limit, PAGE)
      const after = cursor === undefined ? undefined : positionOf(cursor)
      const { user } = await checkId(own)
      const { sessions, last } = await lists.page(user, { limit, after })
      return {
        sessions: sessions
          .filter((session) => !isIdle(session))
          .map((session) => ({ ...session, current: session.id === own })),
        ...(last && { nextCursor: cursorOf(last) }),
      }
    },

    /**
     * Ends a session of the token's user, whichever token it has. Returns false when there is none of
     * that id, or it is somebody else's.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the token's own session is gone.
     */
    async revokeSession(token: string, id: string): Promise<boolean> {
      const own = tokens.verify(token)
      checkString('id', id)
      const { user } = await checkId(own)
      const [state] = await strategy.run(userSessions.statesOf(keys, [id]))
      return state?.user === user && (await lists.end(id))
    },

    /**
     * Ends all sessions of the token's user, this one too, 100 at a time. Returns how many.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the token's own session is gone.
     */
    async logoutEverywhere(token: string): Promise<number> {
      const own = tokens.verify(token)
      const { user } = await checkId(own)
      const ended = await lists.endAll(user)
      // Not in the list if it began with `updateToken`.
      return (await lists.end(own)) ? ended + 1 : ended
    },

    /** Ends all sessions of a user that began with `login`. For administrators. Returns how many. */
    async endUserSessions(user: string): Promise<number> {
      checkName('user', user)
      return await lists.endAll(user)
    },

    /**
     * Counts an attempt at something, such as logging in, by each of `subjects` (a user, an address: any
     * text), over all processes, in windows of `windowSeconds`, a whole number. The caller decides what to
     * refuse. One round trip.
     */
    async countAttempts(subjects: readonly string[], windowSeconds: number): Promise<Attempts> {
      checkStrings('subjects', subjects)
      checkNumber('windowSeconds', windowSeconds, { least: 1, most: 1e9, whole: true })
      return await strategy.run(countAttempts(keys, { subjects, windowSeconds }, now()))
    },

    /**
     * Resolves once Redis can be used. Warns (`onetrip:warning`) if Redis may evict sessions.
     *
     * @param timeoutMs At most a day. Default 10,000.
     * @throws StoreError `ONETRIP_NOT_SENT` when it cannot be used until then.
     */
    async ready(timeoutMs = 10_000): Promise<void> {
      checkNumber('timeoutMs', timeoutMs, { least: 0, most: MAX_TIMEOUT_MS })
      await strategy.ready(timeoutMs)
      await warnOfEviction(strategy)
    },

    /** Asks Redis for a sign of life. */
    async ping(): Promise<void> {
      await strategy.run({ commands: [['PING']], readOnly: true, read: () => undefined })
    },

    /**
     * Another janitor, to start or to run by hand: it ends sessions that are idle or beyond the
     * maximum, rescales the item counts and removes leftovers. Any number of processes may have any
     * number: one of them works at a time. Redis 7.0 or newer.
     *
     * @throws TypeError for an option of a wrong type or out of range, and for a cluster whose keys are
     *   not partitioned (`partitionedKeys`).
     */
    janitor,

    /** Stops its janitors, finishes what is in flight, then closes all connections. */
    async close(): Promise<void> {
      if (janitors.length > 0) await Promise.all(janitors.map((janitor) => janitor.stop()))
      await strategy.close()
    },
  }
}
