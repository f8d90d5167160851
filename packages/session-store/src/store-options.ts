import type { DataOption } from './data/data.ts'
import type { DataLimits } from './data/data-fields.ts'
import type { Keys } from './keys.ts'
import type { NamesOf } from './option-names.ts'
import type { JanitorOptions } from './retention/janitor.ts'
import type { Sender } from './senders/sender.ts'
import type { StrategyName } from './strategies.ts'
import type { StrategyOptions } from './strategy-options.ts'
import type { TokensOptions } from './tokens/tokens.ts'

/** Exactly one of `url`, `sentinel`, `cluster`, `client` and `sender` says how Redis is reached. */
export interface SessionStoreOptions extends StrategyOptions {
  /** How updates are sent, unless by `sender`. Default `batch`. */
  strategy?: StrategyName
  /** A way of sending of your own, as `batching(nodeRedisSender(client))`. The store closes it. */
  sender?: Sender
  /**
   * Updates in flight, beyond which one is refused. Of a cluster: to each node, so that one that does not
   * answer holds up no updates of the others; for the naive strategies in all. Default 1,000.
   */
  maxInFlight?: number
  tokens: TokensOptions
  /** Default `documentKeys`, and with `cluster` `partitionedKeys()`, which a cluster needs. */
  keys?: Keys
  /**
   * All keys begin with it, the janitor's too: stores of several applications or tenants can share a
   * Redis, and a client. At most 128 characters, no `{` and `}`. Default: no prefix.
   */
  prefix?: string
  /**
   * Idle timeout of a session. `recordView` and `viewedItems` accept an idle session until the janitor's
   * next run, and a view refreshes it. `checkToken`, `touch`, `data`, `patch` and the functions that list or end a
   * user's sessions refuse it at once. At least 0.001. Default 14 days.
   */
  idleSeconds?: number
  /**
   * A login beyond it ends the user's oldest sessions, at most 100 at a time. Logins at the same time
   * may exceed it until the next login. `Infinity`: no maximum. Default 100.
   */
  maxSessionsPerUser?: number
  /** Limits of the data of one session. */
  dataLimits?: DataLimits
  /**
   * Options of the janitor, which ends idle sessions and those beyond the maximum. It runs from the
   * store's creation until `close()`. `false`: no janitor. Default `{}`: a janitor with its defaults.
   */
  janitor?: JanitorOptions | false
}

export interface LoginOptions {
  /** A longer lifetime: `tokens.rememberedLifetimeSeconds`, without which it is refused. Default false. */
  remember?: boolean | undefined
  /**
   * The token of a guest session (`loginGuest`), whose data and views the new session takes over. The
   * token of a session that has ended, was idle or is a user's, and one that is not genuine or has
   * expired: the user is logged in without.
   */
  from?: string | undefined
}

export interface ViewOptions extends DataOption {
  /**
   * For callers that may send the view again, as after `ONETRIP_OUTCOME_UNKNOWN`: with the same key it is
   * counted once in ten minutes, for this session and item, and that error is `retrySafe`. 1 to 255
   * characters. Costs a script in place of a command, and a key of some 150 bytes for that time.
   */
  idempotencyKey?: string | undefined
}

export interface PageOptions {
  /** Entries of the list that the page looks at, 1 to 100. Default 100. */
  limit?: number | undefined
  /** `nextCursor` of the page before; undefined for the first one. */
  cursor?: string | undefined
}

export const storeOptionNames: NamesOf<SessionStoreOptions> = {
  url: true,
  tls: true,
  sentinel: true,
  cluster: true,
  client: true,
  poolSize: true,
  deadlineMs: true,
  strategy: true,
  sender: true,
  maxInFlight: true,
  tokens: true,
  keys: true,
  prefix: true,
  idleSeconds: true,
  maxSessionsPerUser: true,
  dataLimits: true,
  janitor: true,
}

export const tokensOptionNames: NamesOf<TokensOptions> = {
  secrets: true,
  lifetimeSeconds: true,
  rememberedLifetimeSeconds: true,
  clock: true,
}
