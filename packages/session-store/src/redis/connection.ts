import { type RedisOptions as AllOptions, Redis } from 'ioredis'
import { checkRange, MAX_TIMEOUT_MS } from '../input.ts'
import { isOfIoredis5 } from './ioredis-version.ts'
import { errorKind, isRefusal } from './outcomes.ts'
import { checkTls, parseRedisUrl } from './redis-url.ts'

// The mapping of RESP3 replies is a type parameter of ioredis's client; the store uses RESP2.
export type RedisOptions = Omit<AllOptions, 'replyMapping'>

/** Options that the store does not support, and why. */
const unsupportedOptions = {
  commandTimeout: 'the store has its own deadline, deadlineMs',
  reconnectOnError: 'it can resend a command',
  stringNumbers: 'the store expects numbers, not strings',
  monitor: 'a monitoring connection cannot send commands',
  keyPrefix: "use the store's option prefix: the keys are the same",
}

/** @throws TypeError if the location is invalid, or an option is not supported. */
export function checkedRedisOptions(redis: string | RedisOptions): RedisOptions {
  if (typeof redis !== 'object' || redis === null) return parseRedisUrl(redis).options
  for (const [name, why] of Object.entries(unsupportedOptions)) {
    if (Reflect.get(redis, name)) throw new TypeError(`redis has an option ${name}: ${why}`)
  }
  if (redis.tls !== undefined) checkTls(redis.tls)
  return redis
}

/**
 * Options of ioredis with which commands are never resent or queued, and never hang. With ioredis's defaults, a
 * connection killed with 20 increments in flight applied all 20 twice; with `maxRetriesPerRequest: 0` they
 * failed at once (ioredis 6.0.0, 2026-11-21).
 */
const safeRedisOptions = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const

/** Exponential backoff with jitter: 50 to 150 ms before the first retry, at most 2 s. */
export const retryDelayMs = (attempt: number) =>
  (0.5 + Math.random()) * Math.min(1_333, 50 * 2 ** attempt)

/** A connection that has not replied for so many deadlines is closed and reopened. */
export const DEADLINES_UNTIL_STALLED = 5

/**
 * Creates a client that stays connected and reconnects. Connects when you call `connect()`. Closes a connection, and
 * opens a new one, if Redis has not replied to the commands at connecting (such as AUTH and SELECT) after five times
 * `deadlineMs`.
 *
 * @throws TypeError if the location is invalid or the deadline is not between 1 ms and a day.
 */
export function longLivedConnection(redis: string | RedisOptions, deadlineMs: number): Redis {
  checkRange('deadlineMs', deadlineMs, { min: 1, max: MAX_TIMEOUT_MS })
  const client = requireDatabase(
    new Redis({
      connectionName: 'onetrip',
      ...checkedRedisOptions(redis),
      ...safeRedisOptions,
      protocol: 2, // the store's commands have no replies of types that RESP3 adds
      lazyConnect: true,
      connectTimeout: deadlineMs,
      retryStrategy: retryDelayMs,
      reconnectOnError: isOfReplica,
    }),
  )
  limitHandshake(client, DEADLINES_UNTIL_STALLED * deadlineMs)
  return client
}

/**
 * Closes a connection that gets no reply during the handshake. ioredis's `connectTimeout` ends before the first command
 * of the handshake: a proxy accepts connections even if it cannot reach Redis. (Its `socketTimeout` would do, for
 * about 5 % more CPU time of each view with one caller, which was within the noise, 2026-11-24: it sets a timer at each
 * write and read.)
 */
function limitHandshake(redis: Redis, timeoutMs: number): void {
  let timer: NodeJS.Timeout | undefined
  const stop = () => clearTimeout(timer)
  const start = () => {
    const { stream } = redis
    const { bytesRead } = stream
    const waited = waitsForReply(redis)
    stop()
    timer = setTimeout(() => {
      const isStalled = waited && waitsForReply(redis) && stream.bytesRead === bytesRead
      if (isStalled) stream.destroy(new Error('no reply during the handshake'))
      else start()
    }, timeoutMs)
  }
  redis.on('connect', start).on('ready', stop).on('close', stop)
}

/** False while Redis loads its data: ioredis then repeats INFO, with pauses. */
const waitsForReply = (redis: Redis): boolean =>
  (redis as unknown as { commandQueue?: { length: number } }).commandQueue?.length !== 0

/**
 * Whether a primary has become a replica: true makes ioredis close the connection for writing, read the replies that are
 * left, and connect again, without resending anything. The address may belong to another server by now.
 */
const isOfReplica = (error: Error): boolean => errorKind(error) === 'READONLY'

/**
 * Creates a client that never resends or retries, for a few commands or a subscription. Connects when you call
 * `connect()`. Other options are those of ioredis.
 *
 * @throws TypeError if the location is invalid.
 */
export const shortLivedConnection = (
  redis: string | RedisOptions,
  connectTimeoutMs: number,
): Redis =>
  requireDatabase(
    new Redis({
      ...checkedRedisOptions(redis),
      ...safeRedisOptions,
      lazyConnect: true,
      connectTimeout: connectTimeoutMs,
      retryStrategy: null,
    }),
  )

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

const databaseRefused = (database: number | string, error: Error) =>
  new Error(`Redis refused to select database ${database}: ${error.message}`, { cause: error })
