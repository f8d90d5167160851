import { Cluster, type ClusterNode, type ClusterOptions } from 'ioredis'
import { retryDelayMs, shortConnection, silentGreeting } from './client.ts'
import { type ClusterAddress, clusterOptions } from './location.ts'

const neverResend = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 } as const

/**
 * As `safeRedisOptions`, for `ioredis.Cluster`: by default it executes a pipeline again whose connection
 * was closed. Commands that a node refuses with MOVED, ASK or TRYAGAIN are redirected all the same. Its
 * queue stays on, since ioredis connects to a node when the first command goes there. `socketTimeout` closes the
 * connection to a node that owes a reply for so long, and no other.
 */
export const safeClusterOptions = {
  retryDelayOnFailover: 0,
  redisOptions: { ...neverResend, socketTimeout: 10_000 },
} as const

/**
 * A client of a Redis Cluster with the options that the store insists on. Give it to
 * `createSessionStore({ client, keys: partitionedKeys() })`; close it with `disconnect()`.
 *
 * @param nodes Some of the nodes; the others are learnt from them.
 * @param options `redisOptions` carries user name, password and TLS; the safe options win.
 */
export function createCluster(nodes: ClusterNode[], options: ClusterOptions = {}): Cluster {
  const redisOptions = {
    ...safeClusterOptions.redisOptions,
    ...options.redisOptions,
    ...neverResend,
    protocol: 2,
  }
  return new Cluster(nodes, {
    clusterRetryStrategy: retryDelayMs,
    ...options,
    ...safeClusterOptions,
    lazyConnect: true,
    // ioredis's type of these is made for options that are written out.
    redisOptions: redisOptions as { protocol: 2 },
  })
}

/** Node resolves it when it connects. ioredis would put an address in its place, which no certificate has. */
const keepName = (name: string, done: (error: null, address: string) => void) => done(null, name)

/** How often a cluster client asks which node has which slot, to learn of a failover without traffic. */
const SLOTS_INTERVAL_MS = 5_000

/** A cluster client for the pool. Opens nothing until `connect()` is called. */
export function clusterAt(
  address: ClusterAddress,
  { connectTimeoutMs, stalledAfterMs }: { connectTimeoutMs: number; stalledAfterMs: number },
): Cluster {
  const { nodes, redisOptions } = clusterOptions(address)
  return createCluster(nodes, {
    dnsLookup: keepName,
    enableReadyCheck: false, // `ready` asks every node
    slotsRefreshInterval: SLOTS_INTERVAL_MS,
    redisOptions: {
      ...redisOptions,
      connectionName: 'onetrip',
      connectTimeout: connectTimeoutMs / 2, // an update that waits for it learns that it was not sent
      socketTimeout: stalledAfterMs,
    },
  })
}

/** As `shortConnection`, for a cluster: its client asks a node for the slots first. */
export function shortCluster(
  address: ClusterAddress,
  connectTimeoutMs: number,
  lean: boolean,
): Cluster {
  const { nodes, redisOptions } = clusterOptions(address)
  return createCluster(nodes, {
    dnsLookup: keepName,
    clusterRetryStrategy: () => null,
    enableReadyCheck: !lean,
    redisOptions: {
      ...redisOptions,
      ...(lean && silentGreeting),
      connectTimeout: connectTimeoutMs,
    },
  })
}

/** Why no node can be reached: ioredis only says that the connection on which it asked one is closed. */
export async function connectionError(
  address: ClusterAddress,
  connectTimeoutMs: number,
): Promise<Error | undefined> {
  const { nodes, redisOptions } = clusterOptions(address)
  const [node] = nodes
  const redis = shortConnection({ ...redisOptions, ...node }, connectTimeoutMs, true)
  let reason: Error | undefined
  redis.on('error', (error) => {
    reason = error
  })
  await redis.connect().catch((error: Error) => {
    reason ??= error
  })
  redis.disconnect()
  return reason && new Error(`${node?.host}:${node?.port}: ${reason.message}`, { cause: reason })
}
