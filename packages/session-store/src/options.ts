import type { DataOption } from './data/read.ts'
import { checkedOptions, checkFunctions, type Kind, MAX_TIMEOUT_MS } from './input.ts'
import { articleKeys, type Keys, prefixedKeys } from './keys.ts'
import { batching } from './redis/batching.ts'
import type { RedisOptions } from './redis/connection.ts'
import { pooled } from './redis/pool.ts'
import type { Runner } from './redis/runner.ts'
import type { Sender } from './redis/sender.ts'
import type { JanitorOptions } from './retention/options.ts'
import type { TokensOptions } from './tokens/tokens.ts'

/** Set exactly one of `redis` and `sender`. */
export interface SessionStoreOptions {
  /**
   * `redis://host:port/database`, `rediss://` or `unix:///path/to/socket?db=database`, each with optional user name and
   * password; or options of ioredis, such as `{ host, port, password, tls }`. The store opens its own connections, and
   * sets itself what makes ioredis never send a command twice. If Redis refuses the database, `ready` rejects; the store
   * never falls back to another database.
   */
  redis?: string | RedisOptions | undefined
  /** Instead of `redis`: for other clients, several servers, or tests. The store closes it. */
  sender?: Sender | undefined
  /** Key names. Default `articleKeys`. */
  keys?: Keys | undefined
  /**
   * Prefix of all keys, including the janitor's, so that several applications or tenants can share a Redis. At most 128
   * characters, no `{` and `}`. Default: no prefix.
   */
  prefix?: string // no undefined: Fastify's register has an option prefix, too
  tokens: TokensOptions
  /** Size of the connection pool, 1 to 1,000. Not with `sender`. Default 1. */
  poolSize?: number | undefined
  /** Timeout of an operation in milliseconds, at most a day. Default 2,000. */
  deadlineMs?: number | undefined
  /** Maximum number of operations in flight; more are rejected. Default 1,000. */
  maxInFlight?: number | undefined
  /**
   * Idle timeout of a session. `checkToken`, `touch`, `data`, `patch` and the functions that list or end a
   * user's sessions reject an idle session at once. `recordView` and `viewedItems` accept it until the
   * janitor's next run, and a view refreshes it. At least 0.001. `Infinity`: no idle timeout. Default 14 days.
   */
  idleSeconds?: number | undefined
  /**
   * Maximum number of sessions of a user. A login beyond it ends all but the latest. Logins at the same time in several
   * processes may exceed it until the next login. `Infinity`: no maximum. Default 100.
   */
  maxSessionsPerUser?: number | undefined
  /**
   * Options of the janitor, which ends idle sessions and those beyond the maximum. The janitor runs from the
   * creation of the store until `close()`. `'elsewhere'`: no janitor in this store, because another process runs
   * the janitor of this data. `false`: no janitor at all, which needs `idleSeconds: Infinity`. Default `{}`.
   */
  janitor?: JanitorOptions | 'elsewhere' | false | undefined
  /**
   * What an end must reach before `logout`, `revokeSession`, `logoutEverywhere`, `endOtherSessions` and
   * `endUserSessions` resolve: `disk`, the append-only file of Redis (`WAITAOF`), or `replicas`, at least one replica
   * (`WAIT`). They wait at most `deadlineMs`, or twice that while other ends wait, and throw `ONETRIP_NOT_DURABLE` after
   * it. One more connection. Needs Redis 7.2 or newer, and `redis`. Default: they do not wait.
   */
  durable?: 'disk' | 'replicas' | undefined
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
   * whether an earlier call, from before the session ended, has counted the view. Refused
   * (`ONETRIP_INVALID_INPUT`) unless all keys are on one Redis.
   */
  idempotencyKey?: string | undefined
}

/** The defaults of all options of a store. */
export const storeDefaults = {
  redis: undefined,
  sender: undefined,
  keys: articleKeys,
  prefix: '',
  tokens: undefined,
  poolSize: 1,
  deadlineMs: 2_000,
  maxInFlight: 1_000,
  idleSeconds: 14 * 24 * 3600,
  maxSessionsPerUser: 100,
  janitor: {},
  durable: undefined,
} satisfies { [Name in keyof Required<SessionStoreOptions>]: unknown }

const kinds = {
  poolSize: { min: 1, max: 1_000, integer: true },
  deadlineMs: { min: 1, max: MAX_TIMEOUT_MS },
  maxInFlight: { min: 1, integer: true },
  idleSeconds: { min: 0.001 },
  maxSessionsPerUser: { min: 1, integer: true },
  durable: ['disk', 'replicas'],
} satisfies Record<string, Kind>

/** What the functions of a store share. */
export interface Settings {
  readonly runner: Runner
  readonly keys: Keys
  /** Milliseconds since 1970. */
  now(): number
  readonly idleSeconds: number
  readonly maxSessionsPerUser: number
  readonly deadlineMs: number
}

/** @throws TypeError if an option does not exist, has a wrong type or is out of range. */
export function checkedStoreOptions(options: SessionStoreOptions) {
  const checked = checkedOptions('a session store', options, storeDefaults, kinds)
  const { redis, sender, poolSize, durable } = options
  if ((redis === undefined) === (sender === undefined)) {
    throw new TypeError('set exactly one of redis and sender')
  }
  if (sender !== undefined && poolSize !== undefined) {
    throw new TypeError('poolSize needs redis: a sender has its own connections')
  }
  if (sender !== undefined && durable !== undefined) {
    throw new TypeError('durable needs redis: a sender cannot wait for the disk or for replicas')
  }
  checkFunctions('keys', checked.keys, Object.keys(articleKeys))
  const keys = prefixedKeys(checked.prefix, checked.keys)
  return { ...checked, keys, now: options.tokens?.clock ?? Date.now }
}

/** The sender for these options. Does not connect yet. @throws TypeError if `redis` or `sender` is invalid. */
export function senderOf(options: ReturnType<typeof checkedStoreOptions>): Sender {
  const { redis, sender, poolSize, deadlineMs } = options
  if (sender === undefined) {
    return { ...batching(pooled({ redis: redis ?? '', poolSize, deadlineMs })), name: 'batch' }
  }
  checkFunctions('a sender', sender, ['send', 'close'])
  if (typeof sender.name !== 'string') throw new TypeError('a sender needs a name')
  return sender
}
