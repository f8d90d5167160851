import {
  longLivedConnection,
  parseRedisUrl,
  publishConnections,
  type RedisOptions,
  type Sender,
  StoreError,
  shortLivedConnection,
  subscribeWith,
} from '@onetrip/session-store'
import type { Redis } from 'ioredis'

/** One Redis server, and how to use it. */
export interface Target {
  redis: string | RedisOptions
  /** Number of shared connections. */
  poolSize: number
  /** Timeout of an operation. */
  deadlineMs: number
}

/** Shared connections to one server, which reconnect by themselves, and the parts of a sender that need no strategy. */
export interface Pool extends Required<Pick<Sender, 'connections' | 'subscribe' | 'close'>> {
  /** The next connection that is up. @throws StoreError `ONETRIP_NOT_SENT` if none is. */
  next(): Redis
}

/** Does not connect before the first `next`. Unlike the store's pool, it keeps a connection that stays silent. */
export function openPool(target: Target): Pool {
  const { poolSize, deadlineMs } = target
  const all = Array.from({ length: poolSize }, () => longLivedConnection(target.redis, deadlineMs))
  const ready = () => all.filter(({ status, stream }) => status === 'ready' && stream.writable)
  let turn = 0
  let lastError: Error | undefined
  for (const redis of all) {
    publishConnections(redis)
    redis.on('error', (error: Error) => {
      // After a connection has closed, ioredis also emits errors for the commands of its handshake.
      if (redis.status !== 'reconnecting' || lastError === undefined) lastError = error
    })
  }
  return {
    next() {
      const up = ready()
      const redis = up[turn++ % up.length]
      if (redis) return redis
      for (const redis of all) {
        if (redis.status === 'wait') redis.connect().catch(() => undefined) // lastError has it
      }
      throw notSent('there is no connection', lastError)
    },
    connections: () => ({ connections: poolSize, ready: ready().length, server: nameOf(target) }),
    subscribe: subscribing(target),
    async close() {
      for (const redis of all) redis.disconnect()
    },
  }
}

/** Subscribes over a connection of its own, as the store asks for. */
export const subscribing =
  (target: Target): Required<Sender>['subscribe'] =>
  (...subscription) =>
    subscribeWith(shortConnection(target), ...subscription)

/** A connection that never retries. Connects when you call `connect()`. */
export const shortConnection = ({ redis, deadlineMs }: Target, options: RedisOptions = {}): Redis =>
  shortLivedConnection({ ...optionsOf(redis), ...options }, deadlineMs)

const optionsOf = (redis: string | RedisOptions): RedisOptions =>
  typeof redis === 'string' ? parseRedisUrl(redis).options : redis

export function nameOf({ redis }: Target): string {
  const { path, host, port } = optionsOf(redis)
  return path ?? `${host}:${port}`
}

export const notSent = (why: string, cause?: unknown) =>
  new StoreError('ONETRIP_NOT_SENT', `not sent to Redis: ${why}`, { cause })
