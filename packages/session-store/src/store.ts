import { StoreError } from './errors.ts'
import { checkLimit, checkName } from './input.ts'
import { documentKeys, type Keys } from './keys.ts'
import { batch } from './strategies/batch.ts'
import { naive } from './strategies/naive.ts'
import { pipeline, script, sequential, transaction } from './strategies/pooled.ts'
import type { Strategy, StrategyName, StrategyOptions } from './strategy.ts'
import { createTokens, type TokensOptions } from './tokens.ts'
import * as updates from './updates.ts'

export interface SessionStoreOptions extends StrategyOptions {
  /** Default `batch`. */
  strategy?: StrategyName
  tokens: TokensOptions
  /** Default `documentKeys`. */
  keys?: Keys
}

export interface RecentSession {
  user: string
  /** Unix seconds with fraction. */
  lastSeen: number
}

const strategies: Record<StrategyName, (options: StrategyOptions) => Strategy> = {
  naive,
  sequential,
  pipeline,
  transaction,
  batch,
  script,
}

export type SessionStore = ReturnType<typeof createSessionStore>

/**
 * Logins, recent sessions and viewed items in Redis.
 *
 * Every function takes the signed token and refuses a malformed, forged or expired one without asking
 * Redis. Besides what each one names, all throw a `StoreError` of the codes that `Strategy.run` throws.
 *
 * @throws TypeError when the URL of Redis or a secret is unusable.
 */
export function createSessionStore(options: SessionStoreOptions) {
  const { keys = documentKeys } = options
  const clock = options.tokens.clock ?? Date.now
  const tokens = createTokens(options.tokens)
  const strategy = strategies[options.strategy ?? 'batch'](options)
  const now = () => clock() / 1000

  const known = <Found>(found: Found | undefined): Found => {
    if (found === undefined) {
      throw new StoreError('ONETRIP_UNKNOWN_SESSION', 'there is no such session (any more)')
    }
    return found
  }

  return {
    strategy: strategy.name,

    /** A new token, good for `updateToken`. Nothing is sent to Redis. */
    issueToken: (): string => tokens.issue(),

    /** When this token stops being good at the latest, in Unix milliseconds. */
    tokenExpiresAt: (token: string): number => tokens.expiresAt(tokens.verify(token)),

    /**
     * The documents' `update_token`: logs the user in on this token, and records a view of `item` if
     * there is one. One round trip (pipeline).
     */
    async updateToken(token: string, user: string, item?: string): Promise<void> {
      const id = tokens.verify(token)
      checkName('user', user)
      if (item !== undefined) checkName('item', item)
      await strategy.run(updates.updateToken(keys, { id, user, item }, now()))
    },

    /**
     * Records that the session viewed the item. One round trip (pipeline).
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the session is gone; nothing of the view is
     *   left then (that takes a second round trip). When the undoing fails:
     *   `ONETRIP_OUTCOME_UNKNOWN`, with its error as the cause.
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

    /** @throws StoreError `ONETRIP_UNKNOWN_SESSION`. */
    async checkToken(token: string): Promise<updates.Session> {
      return known(await strategy.run(updates.checkToken(keys, tokens.verify(token))))
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

    /** Ends the session and removes its views. Returns false when there was none. */
    async logout(token: string): Promise<boolean> {
      return await strategy.run(updates.logout(keys, tokens.verify(token)))
    },

    /** Resolves once Redis can be used; throws `ONETRIP_NOT_SENT` after `timeoutMs` (default 10,000). */
    ready: (timeoutMs = 10_000): Promise<void> => strategy.ready(timeoutMs),

    /** Asks Redis for a sign of life. */
    async ping(): Promise<void> {
      await strategy.run({ commands: [['PING']], readOnly: true, read: () => undefined })
    },

    /** Finishes what is in flight, then closes all connections. */
    close: (): Promise<void> => strategy.close(),
  }
}
