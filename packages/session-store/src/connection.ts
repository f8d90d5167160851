import { type RedisOptions as AllOptions, Redis } from 'ioredis'

// How RESP3 replies are mapped is a type parameter of ioredis's client; we speak RESP2.
type RedisOptions = Omit<AllOptions, 'replyMapping'>

/** Where Redis is: `redis://`, `rediss://` or `unix:///path/to/socket`. */
export type RedisUrl = string

/** @throws TypeError when the URL is of none of the three forms; the message has no password in it. */
function connectionOptions(url: RedisUrl): RedisOptions {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol === 'unix:') return { path: decodeURIComponent(parsed.pathname) }
  if (parsed?.protocol === 'redis:' || parsed?.protocol === 'rediss:') {
    const db = parsed.pathname.slice(1)
    return {
      host: parsed.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
      port: Number(parsed.port || 6379),
      ...(parsed.username && { username: decodeURIComponent(parsed.username) }),
      ...(parsed.password && { password: decodeURIComponent(parsed.password) }),
      ...(db && { db: Number(db) }),
      ...(parsed.protocol === 'rediss:' && { tls: {} }),
    }
  }
  throw new TypeError('the URL of Redis must begin with redis://, rediss:// or unix:///')
}

/**
 * Nothing is sent again behind the caller's back, nothing waits in a queue, nothing hangs: with
 * ioredis's defaults a connection killed with 20 counts in flight applied all 20 twice;
 * `maxRetriesPerRequest: 0` failed them at once (prototype on ioredis 6.0.0, 2026-11-21).
 */
const neverTwice: RedisOptions = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
}

/** A connection that stays open and comes back by itself, at intervals with jitter. */
export function longLivedConnection(url: RedisUrl, connectTimeoutMs: number): Redis {
  const options: RedisOptions = {
    ...connectionOptions(url),
    ...neverTwice,
    protocol: 2, // no reply of ours is of a type that RESP3 adds
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    connectionName: 'onetrip',
    retryStrategy: (attempt) => Math.random() * Math.min(2_000, 50 * 2 ** Math.min(attempt, 6)),
  }
  return new Redis(options)
}

/** A connection for one use, as ioredis makes it by default, but never resending and never retrying. */
export function shortConnection(url: RedisUrl, connectTimeoutMs: number): Redis {
  const options: RedisOptions = {
    ...connectionOptions(url),
    ...neverTwice,
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    retryStrategy: null,
  }
  return new Redis(options)
}
