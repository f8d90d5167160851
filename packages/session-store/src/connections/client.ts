import { type RedisOptions as AllOptions, type Cluster, Redis } from 'ioredis'
import { MAX_TIMEOUT_MS } from '../input.ts'
import { isRefusal } from '../outcomes.ts'
import { checkRange } from '../range.ts'
import { isIoredis5, isOfIoredis5 } from './ioredis-version.ts'
import { type ServerLocation, serverOptions } from './location.ts'

// The mapping of RESP3 replies is a type parameter of ioredis's client; the store uses RESP2.
type RedisOptions = Omit<AllOptions, 'replyMapping'>

/** One connection, or the connections to the nodes of a cluster. */
export type Client = Redis | Cluster

export const isCluster = (client: Client): client is Cluster => client.isCluster

/**
 * Options of ioredis with which commands are never resent or queued, and never hang. With ioredis's defaults, a
 * connection killed with 20 increments in flight applied all 20 twice; with `maxRetriesPerRequest: 0` they
 * failed at once (ioredis 6.0.0, 2026-11-21).
 */
export const safeRedisOptions = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const

/** Exponential backoff with jitter: 50 to 150 ms before the first retry, at most 2 s. */
export const retryDelayMs = (attempt: number) =>
  (0.5 + Math.random()) * Math.min(1_333, 50 * 2 ** attempt)

/**
 * Creates a client that stays connected and reconnects: to a URL, or to the current primary that the sentinels
 * report. Connects when you call `connect()`.
 *
 * @throws TypeError if the location is invalid or the timeout is not between 1 ms and a day.
 */
export function longLivedConnection(
  server: string | ServerLocation,
  connectTimeoutMs: number,
): Redis {
  checkRange('connectTimeoutMs', connectTimeoutMs, { min: 1, max: MAX_TIMEOUT_MS })
  const redis = new Redis({
    ...serverOptions(typeof server === 'string' ? { url: server } : server),
    ...safeRedisOptions,
    protocol: 2, // the store's commands have no replies of types that RESP3 adds
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    connectionName: 'onetrip',
    retryStrategy: retryDelayMs,
    // With sentinels: a primary that is cut off from them does not report a failover; the sentinels do.
    failoverDetector: true,
    sentinelCommandTimeout: connectTimeoutMs,
    sentinelRetryStrategy: retryDelayMs,
    sentinelReconnectStrategy: retryDelayMs,
  } satisfies RedisOptions)
  redis.on('connect', () => ignoreDetectorErrors(redis))
  return requireDatabase(redis)
}

/** The connections of the failover detector are private, so that ioredis would print their errors. */
function ignoreDetectorErrors(redis: Redis): void {
  const { failoverDetector } = Reflect.get(redis, 'connector') as {
    failoverDetector?: { sentinels: readonly { client: Redis }[] } | null
  }
  for (const { client } of failoverDetector?.sentinels ?? []) client.on('error', () => {})
}

/** With these options ioredis sends no HELLO, CLIENT SETINFO or INFO when it connects. */
export const minimalHandshake = {
  protocol: 2,
  disableClientInfo: true,
  enableReadyCheck: false,
} as const

/**
 * Creates a client for one update. It never resends or retries.
 *
 * @param lean True: `minimalHandshake`. False: the handshake of ioredis's defaults.
 */
export function shortConnection(
  server: ReturnType<typeof serverOptions>,
  connectTimeoutMs: number,
  lean: boolean,
): Redis {
  const options: RedisOptions = {
    ...server,
    ...safeRedisOptions,
    // With these options ioredis 5 does not wait for SELECT, so they are not used with a database.
    ...(lean && !(isIoredis5 && 'db' in server) && minimalHandshake),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    retryStrategy: null,
    sentinelCommandTimeout: connectTimeoutMs,
    sentinelRetryStrategy: () => null,
  }
  return requireDatabase(new Redis(options))
}

/**
 * Makes the client close a connection whose SELECT fails during the handshake. ioredis only emits an 'error'
 * event and would use database 0.
 */
export function requireDatabase(redis: Redis): Redis {
  if (requiring.has(redis)) return redis // shared with another store
  requiring.add(redis)
  const select = redis.select.bind(redis)
  redis.select = async (database) => {
    try {
      return await select(database)
    } catch (error) {
      const { message } = error as Error
      const notLoggedIn = message.startsWith('NOAUTH') // ioredis reports the failed login itself
      // ioredis 5 would report this error in addition, and later.
      if (notLoggedIn && redis.options.password && isOfIoredis5(redis.options)) await pending()
      // After the handshake, this is a SELECT of the application.
      const handshake = redis.status === 'connect' && isRefusal(error as Error)
      if (!handshake || notLoggedIn) throw error
      closeRefused(redis, database, error as Error)
      return await pending() // otherwise ioredis would treat the connection as ready
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
 * Does the same for a client that had connected before `requireDatabase` was called.
 *
 * @returns Undefined if there is nothing to check. Otherwise a promise that resolves when the database is
 *   selected or the connection has ended; it stays pending while Redis does not reply.
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

/** Unlike `once` of `node:events`, this does not reject on an 'error' event. */
const next = (redis: Redis, event: 'ready' | 'close') =>
  new Promise<void>((resolve) => redis.once(event, () => resolve()))
