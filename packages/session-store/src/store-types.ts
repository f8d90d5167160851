import type { JanitorOptions } from './janitor.ts'
import type { Keys } from './keys.ts'
import type { Strategy, StrategyName, StrategyOptions } from './strategy.ts'
import type { TokensOptions } from './tokens.ts'
import type { ListedSession } from './user-session-lists.ts'

export interface SessionStoreOptions extends StrategyOptions {
  /** One of ours, or one of your own, which knows where Redis is. Default `batch`. */
  strategy?: StrategyName | Strategy
  tokens: TokensOptions
  /** Default `documentKeys`; `partitionedKeys()` for a cluster. */
  keys?: Keys
  /**
   * A session that was not seen for so long is gone: exactly for `checkToken`, `touch` and
   * `userSessions`, to within one interval of the janitor for a view. More than 0. Default
   * 14 days.
   */
  idleSeconds?: number
  /**
   * A login beyond it ends the user's oldest sessions, at most 100 at a time. Logins at the same time
   * may exceed it for a moment. `Infinity`: no maximum. Default 100.
   */
  maxSessionsPerUser?: number
  /**
   * Limits of the janitor, which ends idle sessions and those beyond the maximum from the store's
   * creation until `close()`. `false`: this store has none. Default: the default limits.
   */
  janitor?: JanitorOptions | false
}

export interface NewSession {
  /** The credential: for its owner only. */
  token: string
  /** When the token stops being good at the latest, in Unix milliseconds. */
  expiresAt: number
}

export interface RecentSession {
  user: string
  /** Unix seconds with fraction. */
  lastSeen: number
}

export interface UserSession extends ListedSession {
  /** It is the session of the token that asked. */
  current: boolean
}

export interface PageOptions {
  /** Entries of the list that the page looks at, 1 to 100. Default 100. */
  limit?: number | undefined
  /** `nextCursor` of the page before; undefined for the first one. */
  cursor?: string | undefined
}

export interface UserSessionPage {
  /** The latest login first. */
  sessions: UserSession[]
  /** For the page that follows; undefined on the last one. */
  nextCursor?: string
}
