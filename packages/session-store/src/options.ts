import type { Keys } from './keys.ts'
import type { DataOption } from './operations/data.ts'
import type { NamesOf } from './option-names.ts'
import type { PoolLocation } from './redis/choose.ts'
import type { Sender } from './redis/sender.ts'
import type { JanitorOptions } from './retention/janitor-options.ts'
import type { TokensOptions } from './tokens/tokens.ts'

/** Set exactly one of `url`, `client` and `sender`. */
export interface SessionStoreOptions extends PoolLocation {
  /** A sender, such as `clusterSender`, `sentinelSender` or `nodeRedisSender(client)`. The store closes it. */
  sender?: Sender
  /**
   * Maximum number of operations in flight; more are rejected. On a cluster, the limit applies to each node, so that
   * a node that does not reply does not block operations of the others. Default 1,000.
   */
  maxInFlight?: number
  tokens: TokensOptions
  /** Key names. Default `articleKeys`. A cluster needs `partitionedKeys()`. */
  keys?: Keys
  /**
   * Prefix of all keys, including the janitor's, so that several applications or tenants can share a Redis
   * and a client. At most 128 characters, no `{` and `}`. Default: no prefix.
   */
  prefix?: string
  /**
   * Idle timeout of a session. `checkToken`, `touch`, `data`, `patch` and the functions that list or end a
   * user's sessions reject an idle session at once. `recordView` and `viewedItems` accept it until the
   * janitor's next run, and a view refreshes it. At least 0.001. `Infinity`: no idle timeout. Default 14 days.
   */
  idleSeconds?: number
  /**
   * Maximum number of sessions of a user. A login beyond it ends all but the latest, at most 100 at a time. Concurrent
   * logins may exceed it until the next login. `Infinity`: no maximum. Default 100.
   */
  maxSessionsPerUser?: number
  /**
   * Options of the janitor, which ends idle sessions and those beyond the maximum. The janitor runs from the
   * creation of the store until `close()`. `'elsewhere'`: no janitor in this store, because another process runs
   * the janitor of this data. `false`: no janitor at all, which needs `idleSeconds: Infinity`. Default `{}`.
   */
  janitor?: JanitorOptions | 'elsewhere' | false
}

export interface LoginOptions {
  /** Use the longer `tokens.rememberedLifetimeSeconds`, which must be set. Default false. */
  remember?: boolean | undefined
  /**
   * The token of a guest session (`loginGuest`) or of another session of this user, as when a user confirms the
   * password. The new session takes over its data and views; the old one ends. Ignored if the token is invalid or
   * expired, or if the session has ended, is idle or belongs to another user.
   */
  from?: string | undefined
  /**
   * What the user needs to recognize this session in the list (`userSessions`), such as the browser. At most 200 bytes
   * (UTF-8), no control characters. It is personal data, and is stored with the session: the end of
   * the session removes it. Give labels only when all processes know them: older ones read a label as
   * session data that is not JSON. Default: none.
   */
  label?: string | undefined
}

export interface ViewOptions extends DataOption {
  /**
   * Makes a retry safe, such as after `ONETRIP_OUTCOME_UNKNOWN`: for ten minutes, all views of this session
   * and item with the same key count once, and that error is `retrySafe`. 1 to 255 characters. Overhead: a
   * script, and a Redis key of about 150 bytes for ten minutes.
   *
   * If the session has ended before a retry, it fails with `ONETRIP_UNKNOWN_SESSION`, and `mayHaveWritten` says
   * whether an earlier call may have counted the view. On one Redis, only a call before the session ended can have
   * counted it; on a cluster, also a later one whose reply was lost.
   */
  idempotencyKey?: string | undefined
}

export const storeOptionNames: NamesOf<SessionStoreOptions> = {
  url: true,
  tls: true,
  client: true,
  poolSize: true,
  deadlineMs: true,
  sender: true,
  maxInFlight: true,
  tokens: true,
  keys: true,
  prefix: true,
  idleSeconds: true,
  maxSessionsPerUser: true,
  janitor: true,
}

export const tokensOptionNames: NamesOf<TokensOptions> = {
  secrets: true,
  lifetimeSeconds: true,
  rememberedLifetimeSeconds: true,
  renewAfterSeconds: true,
  maxLifetimeSeconds: true,
  clock: true,
}
