import { type RedisOptions as AllOptions, type Cluster, Redis } from 'ioredis'
import { MAX_TIMEOUT_MS } from '../input.ts'
import { isRefusal } from '../outcomes.ts'
import { checkRange } from '../range.ts'
import { isIoredis5, isOfIoredis5 } from './ioredis-version.ts'
import { type ServerLocation, serverOptions } from './location.ts'

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

/** At most 2 s, growing from about 50 ms with each attempt, with jitter so that not all come at once. */
export const retryDelayMs = (attempt: number) =>
  (0.5 + Math.random()) * Math.min(1_333, 50 * 2 ** attempt)

/**
 * A connection that stays open and reconnects: to a URL, or to the master that sentinels name, whichever
 * it is at the moment. Opens nothing until `connect()` is called.
 *
 * @throws TypeError when the location is unusable or the timeout is not between 1 ms and a day.
 */
export function longLivedConnection(
  server: string | ServerLocation,
  connectTimeoutMs: number,
): Redis {
  checkRange('connectTimeoutMs', connectTimeoutMs, { min: 1, max: MAX_TIMEOUT_MS })
  const redis = new Redis({
    ...serverOptions(typeof server === 'string' ? { url: server } : server),
    ...safeRedisOptions,
    protocol: 2, // no reply of ours is of a type that RESP3 adds
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    connectionName: 'onetrip',
    retryStrategy: retryDelayMs,
    // With sentinels. A master that was cut off does not say that there is another one; they do.
    failoverDetector: true,
    sentinelCommandTimeout: connectTimeoutMs,
    sentinelRetryStrategy: retryDelayMs,
    sentinelReconnectStrategy: retryDelayMs,
  } satisfies RedisOptions)
  redis.on('connect', () => silenceDetector(redis))
  return requireDatabase(redis)
}

/** ioredis prints errors of the connections on which it hears of failovers: nobody can listen to them. */
function silenceDetector(redis: Redis): void {
  const { failoverDetector } = Reflect.get(redis, 'connector') as {
    failoverDetector?: { sentinels: readonly { client: Redis }[] } | null
  }
  for (const { client } of failoverDetector?.sentinels ?? []) client.on('error', () => {})
}

/** Without what ioredis sends of its own accord when it connects: no HELLO, CLIENT SETINFO and INFO. */
export const silentGreeting = {
  protocol: 2,
  disableClientInfo: true,
  enableReadyCheck: false,
} as const

/**
 * A connection for one use, never resending and never retrying: as ioredis makes it by default, or
 * `lean`, with which nothing is sent but what the caller sends.
 */
export function shortConnection(
  server: ReturnType<typeof serverOptions>,
  connectTimeoutMs: number,
  lean: boolean,
): Redis {
  const options: RedisOptions = {
    ...server,
    ...safeRedisOptions,
    // ioredis 5 would not wait for the database: its greeting is silent only where there is none.
    ...(lean && !(isIoredis5 && 'db' in server) && silentGreeting),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    retryStrategy: null,
    sentinelCommandTimeout: connectTimeoutMs,
    sentinelRetryStrategy: () => null,
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
