import type { ClusterAddress, ServerLocation } from '../../cluster/location.ts'
import type { Client } from '../connections/client.ts'

/** Set exactly one of `url`, `sentinel`, `cluster` and `client`. */
export interface StrategyOptions extends ServerLocation {
  /** A Redis Cluster, with partitioned keys. */
  cluster?: ClusterAddress | undefined
  /**
   * An ioredis client, several, or a `Cluster`, created with `safeRedisOptions` or `safeClusterOptions`.
   * The store connects a lazy client and never closes one.
   */
  client?: Client | readonly Client[] | undefined
  /**
   * Size of the connection pool, 1 to 1,000; in a cluster, for each node. The naive strategies have no pool.
   * Not with `client`. Default 1.
   */
  poolSize?: number
  /**
   * Timeout of an update, at most a day. With the naive strategies it includes connecting. Default 2,000.
   */
  deadlineMs?: number
}

export const DEFAULT_DEADLINE_MS = 2_000
