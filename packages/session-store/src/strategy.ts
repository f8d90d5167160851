import type { ConnectionOptions } from 'node:tls'
import type { Client } from './client.ts'
import type { PoolState } from './pool.ts'
import type { Update } from './updates.ts'

/**
 * A way of sending an update to Redis. All strategies send the commands of the same update.
 * `strategyOf` makes one of a function that sends.
 */
export interface Strategy {
  readonly name: string
  /** What the pool is doing; undefined for a strategy that has none, such as `naive`. */
  readonly pool: PoolState | undefined
  /**
   * Sends the update and reads its replies.
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`.
   */
  run<Result>(update: Update<Result>): Promise<Result>
  /**
   * One step of SCAN over all nodes that hold keys, beginning or going on at `from`.
   *
   * @throws StoreError as `run`.
   */
  scan(request: ScanRequest, from: ScanPosition | undefined): Promise<ScanStep>
  /**
   * Resolves once Redis can be used.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` when it cannot within `timeoutMs`.
   */
  ready(timeoutMs: number): Promise<void>
  /** Finishes what is in flight, then closes every connection that it opened. */
  close(): Promise<void>
}

export interface ScanRequest {
  /** As `SCAN MATCH`. */
  match: string
  /** About how many keys one step looks at. */
  count: number
}

/** Where a scan goes on. */
export interface ScanPosition {
  readonly node: string
  readonly cursor: string
}

export interface ScanStep {
  /** Some perhaps twice. */
  readonly keys: readonly string[]
  /** Undefined at the end. */
  readonly next: ScanPosition | undefined
}

export const strategyNames = [
  'naive',
  'naive-lean',
  'sequential',
  'pipeline',
  'transaction',
  'batch',
  'script',
] as const
export type StrategyName = (typeof strategyNames)[number]

export interface StrategyOptions {
  /**
   * `redis://host:port/database`, `rediss://` or `unix:///path/to/socket?db=database`, each with user
   * name and password if needed (`parseRedisUrl`). A database that cannot be selected is never replaced
   * by another: `ready` fails. Exactly one of `url` and `client` must be given; `naive` and `naive-lean` need
   * a URL.
   */
  url?: string | undefined
  /**
   * For a URL with `rediss://`: `ca`, `cert` and `key` (in PEM format), `servername` and whatever else
   * Node's `tls.connect` takes. Default: Node's certificate authorities, and the host of the URL as the
   * name in the certificate and for SNI.
   */
  tls?: ConnectionOptions | undefined
  /**
   * An ioredis client, several, or a `Cluster`, made with `safeRedisOptions` or `safeClusterOptions`.
   * It is used, connected if it was lazy, and never closed.
   */
  client?: Client | readonly Client[] | undefined
  /** Connections of the pool that `url` opens, 1 to 1,000; the naive strategies have none. Default 1. */
  poolSize?: number
  /** How long an update may take, connecting included where it connects. At most a day. Default 2,000. */
  deadlineMs?: number
  /** Updates in flight on one connection (naive: in all), beyond which one is refused. Default 1,000. */
  maxInFlight?: number
}
