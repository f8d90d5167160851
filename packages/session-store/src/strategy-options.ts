import type { ConnectionOptions } from 'node:tls'
import type { Client } from './connections/client.ts'

export interface StrategyOptions {
  /**
   * `redis://host:port/database`, `rediss://` or `unix:///path/to/socket?db=database`, each with user
   * name and password if needed (`parseRedisUrl`). A database that cannot be selected is never replaced
   * by another: `ready` fails. `naive` and `naive-lean` need a URL.
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
}

export const DEFAULT_DEADLINE_MS = 2_000
