import type { ConnectionOptions } from 'node:tls'
import {
  type RedisOptions as AllOptions,
  Cluster,
  type ClusterNode,
  type ClusterOptions,
  Redis,
} from 'ioredis'
import { MAX_TIMEOUT_MS } from '../input.ts'
import { isRefusal } from '../outcomes.ts'
import { checkRange } from '../range.ts'
import { checkKind } from './client-kind.ts'
import { isIoredis5, isOfIoredis5 } from './ioredis-version.ts'
import { type RedisAddress, redisAddress } from './redis-url.ts'

// How RESP3 replies are mapped is a type parameter of ioredis's client; we speak RESP2.
type RedisOptions = Omit<AllOptions, 'replyMapping'>

/** What commands are sent through: one connection, or the connections to the nodes of a cluster. */
export type Client = Redis | Cluster

export const isCluster = (client: Client): client is Cluster => client.isCluster

/**
 * What ioredis needs so that nothing is sent again behind the caller's back, nothing waits in a queue
 * and nothing hangs: with its defaults a connection killed with 20 counts in flight applied all 20
 * twice; `maxRetriesPerRequest: 0` failed them at once (prototype on ioredis 6.0.0, 2026-11-21).
 */
export const safeRedisOptions = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const

/**
 * The same for `ioredis.Cluster`: by default it executes a pipeline again whose connection was closed.
 * Commands that a node refuses with MOVED, ASK or TRYAGAIN are redirected all the same. Its queue stays
 * on, since ioredis connects to a node when the first command goes there.
 */
export const safeClusterOptions = {
  retryDelayOnFailover: 0,
  redisOptions: {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  },
} as const

/** At most 2 s, growing from about 50 ms with each attempt, with jitter so that not all come at once. */
const retryDelayMs = (attempt: number) => (0.5 + Math.random()) * Math.min(1_333, 50 * 2 ** attempt)

/**
 * A connection that stays open and reconnects. Opens nothing until `connect()` is called.
 *
 * @param tls As the store's option.
 * @throws TypeError when the URL or `tls` is unusable or the timeout is not between 1 ms and a day.
 */
export function longLivedConnection(
  url: string,
  connectTimeoutMs: number,
  tls?: ConnectionOptions,
): Redis {
  checkRange('connectTimeoutMs', connectTimeoutMs, { least: 1, most: MAX_TIMEOUT_MS })
  const options: RedisOptions = {
    ...redisAddress(url, tls).options,
    ...safeRedisOptions,
    protocol: 2, // no reply of ours is of a type that RESP3 adds
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    connectionName: 'onetrip',
    retryStrategy: retryDelayMs,
  }
  return requireDatabase(new Redis(options))
}

/** Without what ioredis sends of its own accord when it connects: no HELLO, CLIENT SETINFO and INFO. */
const silentGreeting = { protocol: 2, disableClientInfo: true, enableReadyCheck: false } as const

/**
 * A connection for one use, never resending and never retrying: as ioredis makes it by default, or
 * `lean`, with which nothing is sent but what the caller sends.
 */
export function shortConnection(
  address: RedisAddress,
  connectTimeoutMs: number,
  lean: boolean,
): Redis {
  const options: RedisOptions = {
    ...address.options,
    ...safeRedisOptions,
    // ioredis 5 would not wait for the database: its greeting is silent only where there is none.
    ...(lean && !(isIoredis5 && address.options.db !== undefined) && silentGreeting),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    retryStrategy: null,
  }
  return requireDatabase(new Redis(options))
}

/**
 * Closes a connection whose SELECT fails while it opens. ioredis emits an 'error' event then, but goes
 * on with database 0.
 */
export function requireDatabase(redis: Redis): Redis {
  if (requiring.has(redis)) return redis // of another store
  requiring.add(redis)
  const select = redis.select.bind(redis)
  redis.select = async (database) => {
    try {
      return await select(database)
    } catch (error) {
      const { message } = error as Error
      const notLoggedIn = message.startsWith('NOAUTH') // ioredis reports a failed login by itself
      // ioredis 5 would report this, too, and later.
      if (notLoggedIn && redis.options.password && isOfIoredis5(redis.options)) await pending()
      // Not a caller's own SELECT later on.
      const handshake = redis.status === 'connect' && isRefusal(error as Error)
      if (!handshake || notLoggedIn) throw error
      closeRefused(redis, database, error as Error)
      return await pending() // or ioredis would take the connection for ready
    }
  }
  return redis
}

const pending = () => new Promise<never>(() => {})
const requiring = new WeakSet<Redis>()

function closeRefused(redis: Redis, database: number | string, error: Error): void {
  const reason = `Redis refused to select database ${database}: ${error.message}`
  redis.stream.destroy(new Error(reason, { cause: error }))
}

/**
 * Does the same for the present connection of a client that connected before `requireDatabase`.
 *
 * @returns Undefined if there is nothing to check. Else resolves when the database is selected or the
 *   connection has ended; never while Redis does not answer.
 */
export function checkDatabase(redis: Redis): Promise<void> | undefined {
  const database = redis.condition?.select ?? 0
  if (database === 0 || (redis.status !== 'connect' && redis.status !== 'ready')) return undefined
  return selectAgain(redis, database)
}

async function selectAgain(redis: Redis, database: number): Promise<void> {
  if (redis.status === 'connect') await next(redis, 'ready')
  try {
    await redis.select(database)
  } catch (error) {
    if (!isRefusal(error as Error)) return // the connection has ended
    const closed = next(redis, 'close')
    closeRefused(redis, database, error as Error)
    await closed
  }
}

/** Unlike `once` of `node:events`, it does not reject at an 'error' event. */
const next = (redis: Redis, event: 'ready' | 'close') =>
  new Promise<void>((resolve) => redis.once(event, () => resolve()))

/**
 * A client of a Redis Cluster with the options that the store insists on. Give it to
 * `createSessionStore({ client, keys: partitionedKeys() })`; close it with `disconnect()`.
 *
 * @param nodes Some of the nodes; the others are learnt from them.
 * @param options `redisOptions` carries user name, password and TLS; the safe options win.
 */
export function createCluster(nodes: ClusterNode[], options: ClusterOptions = {}): Cluster {
  const redisOptions = { ...options.redisOptions, ...safeClusterOptions.redisOptions, protocol: 2 }
  return new Cluster(nodes, {
    clusterRetryStrategy: retryDelayMs,
    ...options,
    ...safeClusterOptions,
    lazyConnect: true,
    // ioredis's type of these is made for options that are written out.
    redisOptions: redisOptions as { protocol: 2 },
  })
}

/** An option of ioredis that an injected client must leave at its default, and why. */
type Unsupported = readonly [name: string, byDefault: unknown, why: string]

const unsupportedOptions: readonly Unsupported[] = [
  ['commandTimeout', undefined, 'the store has a deadline of its own, deadlineMs'],
  ['reconnectOnError', null, 'it can send a command again'],
  ['stringNumbers', false, 'the store needs numbers as numbers'],
  ['monitor', false, 'such a connection cannot send commands'],
  ['keyPrefix', '', "use the store's option prefix: the keys are the same"],
]

const readyCheckOption: Unsupported = [
  'enableReadyCheck',
  true,
  'without it ioredis 5 takes a connection for ready too early, and a lost one perhaps for ever',
]

const unsupportedClusterOptions: readonly Unsupported[] = [
  ['db', 0, 'a cluster has no other database'],
  ['enableAutoPipelining', false, 'it can send a command again when a slot moves'],
  ['scaleReads', 'master', 'a replica may still have a session that has ended'],
]

/**
 * Refuses a client that could execute a write twice, or that the store cannot work with.
 *
 * @throws TypeError naming the options to change.
 */
export function checkClient(client: Client): void {
  checkKind(client)
  const actual: Record<string, unknown> = { ...client.options }
  const ofNodes: Record<string, unknown> = {
    ...(isCluster(client) && client.options.redisOptions),
  }
  const unsupported = [
    ...unsupportedOptions,
    ...(isCluster(client) ? unsupportedClusterOptions : []),
    ...(!isCluster(client) && isOfIoredis5(actual) ? [readyCheckOption] : []),
  ].filter(([name, byDefault]) =>
    [actual[name], ofNodes[name]].some((value) => (value ?? byDefault) !== byDefault),
  )
  if (unsupported.length > 0) {
    const list = unsupported.map(([name, , why]) => `${name} (${why})`)
    throw new TypeError(
      `this ioredis client has options that are not supported: ${list.join('; ')}`,
    )
  }
  const wanted = isCluster(client) ? safeClusterOptions : safeRedisOptions
  const wrong = Object.entries(wanted)
    .filter(([name, value]) => typeof value !== 'object' && actual[name] !== value)
    .map(([name, value]) => `${name}: ${value}`)
  if (wrong.length > 0) {
    const preset = isCluster(client) ? 'safeClusterOptions' : 'safeRedisOptions'
    throw new TypeError(
      `this ioredis client could send a write twice or late; it needs ${wrong.join(', ')} (see ${preset})`,
    )
  }
}
