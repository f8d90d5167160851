import { Cluster, type ClusterNode, type ClusterOptions } from 'ioredis'
import { retryDelayMs, shortConnection, unsupportedOptions } from '../redis/client.ts'
import { limitHandshake } from '../redis/handshake.ts'
import { type ClusterAddress, clusterOptions } from './address.ts'

const neverResend = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 } as const

/**
 * As `safeRedisOptions`, for `ioredis.Cluster`, which by default resends a pipeline after its connection was
 * closed. Commands that a node refuses with MOVED or ASK are still redirected. The offline queue stays on, because
 * ioredis connects to a node when it sends the first command there. `socketTimeout` closes the connection to a
 * node that does not reply for so long, and no other.
 */
export const safeClusterOptions = {
  retryDelayOnFailover: 0,
  redisOptions: { ...neverResend, socketTimeout: 10_000 },
} as const

/** An option of ioredis that must keep its default in an injected client, and why. */
type Unsupported = readonly [name: string, byDefault: unknown, why: string]

const defaultOf: Record<string, unknown> = {
  reconnectOnError: null,
  stringNumbers: false,
  monitor: false,
  keyPrefix: '',
}

const unsupportedClusterOptions: readonly Unsupported[] = [
  ...Object.entries(unsupportedOptions).map(
    ([name, why]): Unsupported => [name, defaultOf[name], why],
  ),
  ['db', 0, 'a cluster has only database 0'],
  ['enableAutoPipelining', false, 'it can resend a command when a slot moves'],
  ['scaleReads', 'master', 'a replica may still have a session that has ended'],
]

/** @throws TypeError if the client could execute a write twice, or has unsupported options. */
export function checkCluster(client: Cluster): void {
  const options = (client as Partial<Cluster> | undefined)?.options
  // iovalkey, a fork of an older ioredis, does not have this option.
  const isKnown = typeof options === 'object' && 'clusterNodeRetryStrategy' in options
  if (client?.isCluster !== true || !isKnown) {
    throw new TypeError('client must be a Cluster of ioredis 5 (from 5.11) or 6')
  }
  checkClientOptions('safeClusterOptions', safeClusterOptions, {
    given: [options, options.redisOptions ?? {}],
    unsupported: unsupportedClusterOptions,
  })
}

/**
 * @param preset The name of `safe`, the options that the client must have.
 * @param given The client's options, and those of its nodes.
 * @throws TypeError naming the options to change.
 */
function checkClientOptions(
  preset: string,
  safe: object,
  { given, unsupported }: { given: readonly object[]; unsupported: readonly Unsupported[] },
): void {
  const valuesOf = (name: string) => given.map((options) => Reflect.get(options, name))
  const wrong = unsupported
    .filter(([name, byDefault]) =>
      valuesOf(name).some((value) => (value ?? byDefault) !== byDefault),
    )
    .map(([name, , why]) => `${name} (${why})`)
  if (wrong.length > 0) {
    throw new TypeError(
      `this ioredis client has options that are not supported: ${wrong.join('; ')}`,
    )
  }
  const missing = Object.entries(safe)
    .filter(([name, value]) => typeof value !== 'object' && valuesOf(name)[0] !== value)
    .map(([name, value]) => `${name}: ${value}`)
  if (missing.length > 0) {
    throw new TypeError(
      `this ioredis client could send a write twice or late; set ${missing.join(', ')} (see ${preset})`,
    )
  }
}

/**
 * Creates a client of a Redis Cluster with the options that the store needs. Pass it to
 * `clusterSender({ client })`; close it with `disconnect()`.
 *
 * @param nodes Some of the nodes; the client discovers the others.
 * @param options Set user name, password and TLS in `redisOptions`. The safe options take precedence.
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
    // ioredis's type only fits literal options.
    redisOptions: redisOptions as { protocol: 2 },
  })
}

/** Leaves the lookup to Node: ioredis would replace the name by an address, which no certificate contains. */
const keepHostName = (name: string, done: (error: null, address: string) => void) =>
  done(null, name)

/** How often a cluster client refreshes its table of slots, to notice a failover without traffic. */
const SLOTS_INTERVAL_MS = 5_000

/** Creates a cluster client for a sender. Connects when you call `connect()`. */
export function clusterAt(
  address: ClusterAddress,
  { deadlineMs, stalledAfterMs }: { deadlineMs: number; stalledAfterMs: number },
): Cluster {
  const { nodes, redisOptions } = clusterOptions(address)
  return createCluster(nodes, {
    dnsLookup: keepHostName,
    enableReadyCheck: false, // `ready` checks every node
    slotsRefreshInterval: SLOTS_INTERVAL_MS,
    redisOptions: {
      ...redisOptions,
      connectionName: 'onetrip',
      connectTimeout: deadlineMs / 2, // before the deadline, so that a waiting operation is ONETRIP_NOT_SENT
      socketTimeout: stalledAfterMs,
    },
  })
}

/** As `shortConnection`, for a cluster: the client first asks a node for the table of slots. */
export function shortCluster(address: ClusterAddress, connectTimeoutMs: number): Cluster {
  const { nodes, redisOptions } = clusterOptions(address)
  return createCluster(nodes, {
    dnsLookup: keepHostName,
    clusterRetryStrategy: () => null,
    redisOptions: { ...redisOptions, connectTimeout: connectTimeoutMs },
  })
}

/** Finds out why no node can be reached: ioredis only reports that a connection is closed. */
export async function connectionError(
  address: ClusterAddress,
  connectTimeoutMs: number,
): Promise<Error | undefined> {
  const { nodes, redisOptions } = clusterOptions(address)
  const [node] = nodes
  const redis = shortConnection(
    { ...redisOptions, ...node, enableReadyCheck: false },
    connectTimeoutMs,
  )
  let reason: Error | undefined
  redis.on('error', (error) => {
    reason = error
  })
  limitHandshake(redis, connectTimeoutMs)
  await redis.connect().catch((error: Error) => {
    reason ??= error
  })
  redis.disconnect()
  return reason && new Error(`${node?.host}:${node?.port}: ${reason.message}`, { cause: reason })
}
