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
   * All keys begin with it, the janitor's too: stores of several applications or tenants can share a
   * Redis, and a client. At most 128 characters, no `{` and `}`. Default: no prefix.
   */
  prefix?: string
  /**
   * Idle timeout of a session. `recordView` and `viewedItems` accept an idle session until the janitor's
   * next run, and a view refreshes it. `checkToken`, `touch` and the functions that list or end a user's
   * sessions refuse it at once. At least 0.001. Default 14 days.
   */
  idleSeconds?: number
  /**
   * A login beyond it ends the user's oldest sessions, at most 100 at a time. Logins at the same time
   * may exceed it until the next login. `Infinity`: no maximum. Default 100.
   */
  maxSessionsPerUser?: number
  /**
   * Options of the janitor, which ends idle sessions and those beyond the maximum. It runs from the
   * store's creation until `close()`. `false`: no janitor. Default `{}`: a janitor with its defaults.
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
  /** For the next page; undefined on the last one. */
  nextCursor?: string
}
