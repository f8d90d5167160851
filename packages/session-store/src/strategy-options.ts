import type { Client } from './connections/client.ts'
import type { ClusterAddress, ServerLocation } from './connections/location.ts'

/** Exactly one of `url`, `sentinel`, `cluster` and `client` says how Redis is reached. */
export interface StrategyOptions extends ServerLocation {
  /** A Redis Cluster. Its keys are partitioned. */
  cluster?: ClusterAddress | undefined
  /**
   * An ioredis client, several, or a `Cluster`, made with `safeRedisOptions` or `safeClusterOptions`.
   * It is used, connected if it was lazy, and never closed.
   */
  client?: Client | readonly Client[] | undefined
  /**
   * Connections that the pool opens, 1 to 1,000, to each node of a cluster; the naive strategies have no
   * pool. Not with `client`. Default 1.
   */
  poolSize?: number
  /** How long an update may take, connecting included where it connects. At most a day. Default 2,000. */
  deadlineMs?: number
}

export const DEFAULT_DEADLINE_MS = 2_000
