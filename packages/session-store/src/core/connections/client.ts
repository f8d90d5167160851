import { type RedisOptions as AllOptions, type Cluster, Redis } from 'ioredis'
import { type ServerLocation, serverOptions } from '../../cluster/location.ts'
import { MAX_TIMEOUT_MS } from '../input.ts'
import { isRefusal } from '../outcomes.ts'
import { checkRange } from '../range.ts'
import { DEADLINES_UNTIL_STALLED, limitHandshake } from './handshake.ts'
import { isIoredis5, isOfIoredis5 } from './ioredis-version.ts'

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
 * report. Connects when you call `connect()`. Closes a connection, and opens a new one, if Redis has not replied to
 * the commands at connecting (such as AUTH and SELECT) after five times `connectTimeoutMs`.
 *
 * @throws TypeError if the location is invalid or the timeout is not between 1 ms and a day.
 */
export function longLivedConnection(
  server: string | ServerLocation,
  connectTimeoutMs: number,
): Redis {
  checkRange('connectTimeoutMs', connectTimeoutMs, { min: 1, max: MAX_TIMEOUT_MS })
  const redis = redisAt(typeof server === 'string' ? { url: server } : server, connectTimeoutMs)
  limitHandshake(redis, DEADLINES_UNTIL_STALLED * connectTimeoutMs)
  return redis
}

/** As `longLivedConnection`, for the pool, which limits the handshakes of all its clients. */
export function redisAt(server: ServerLocation, connectTimeoutMs: number): Redis {
  const redis = new Redis({
    ...serverOptions(server),
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
  redis.on('connect', () => watchDetector(redis))
  return requireDatabase(redis)
}

/**
 * Keeps the failover detector subscribed. ioredis would print the errors of its private connections, and a
 * resubscription without a reply would be an unhandled rejection.
 */
function watchDetector(redis: Redis): void {
  const { failoverDetector } = Reflect.get(redis, 'connector') as {
    failoverDetector?: { sentinels: readonly { client: Redis }[] } | null
  }
  for (const { client } of failoverDetector?.sentinels ?? []) {
    client.on('error', () => {})
    client.options.autoResubscribe = false
    client.on('ready', () => {
      const { stream } = client
      client.subscribe('+switch-master').catch(() => stream.destroy()) // then it connects again
    })
  }
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
 * Makes a client of our own close a connection whose SELECT fails during the handshake. ioredis only emits an
 * 'error' event and would use database 0.
 */
function requireDatabase(redis: Redis): Redis {
  const select = redis.select.bind(redis)
  redis.select = async (database) => {
    // After the handshake, this is a SELECT of the application.
    const isHandshake = redis.status === 'connect'
    try {
      return await select(database)
    } catch (error) {
      if (!isHandshake) throw error
      const { message } = error as Error
      const notLoggedIn = message.startsWith('NOAUTH') // ioredis reports the failed login itself
      // ioredis 5 would report this error in addition, and later.
      if (notLoggedIn && redis.options.password && isOfIoredis5(redis.options)) await pending()
      if (notLoggedIn) throw error
      // Any other error means that the connection has ended.
      if (isRefusal(error as Error)) redis.stream.destroy(databaseRefused(database, error as Error))
      return await pending() // ioredis would emit the error and treat the connection as ready
    }
  }
  return redis
}

const pending = () => new Promise<never>(() => {})

export const databaseRefused = (database: number | string, error: Error) =>
  new Error(`Redis refused to select database ${database}: ${error.message}`, { cause: error })
