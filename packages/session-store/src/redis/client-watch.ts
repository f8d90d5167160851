import type { Redis } from 'ioredis'
import { publishConnection, publishDisconnection } from '../diagnostics.ts'
import { checkDatabase } from './database.ts'
import { limitHandshake } from './handshake.ts'

/** Observes a client. */
export interface ClientWatch {
  /** Whether the client is connected, and in its database. */
  readonly isReady: boolean
  /** Why the client is not ready: Redis refused its database, or the last error that the client emitted. */
  readonly lastError: unknown
  stop(): void
}

/** Returns a function that watches clients. Stores that share a client share its watch, until the last one stops. */
export function sharedWatches<Client extends object, Options>(
  start: (client: Client, options: Options) => ClientWatch,
): (client: Client, options: Options) => ClientWatch {
  const watched = new WeakMap<Client, { watch: ClientWatch; stores: number }>()
  return (client, options) => {
    const shared = watched.get(client) ?? { watch: start(client, options), stores: 0 }
    watched.set(client, shared)
    shared.stores++
    let stopped = false
    return {
      get isReady() {
        return shared.watch.isReady
      },
      get lastError() {
        return shared.watch.lastError
      },
      stop() {
        if (stopped) return
        stopped = true
        if (--shared.stores > 0) return
        shared.watch.stop()
        watched.delete(client)
      },
    }
  }
}

interface WatchOptions {
  /** A connection that has not replied for so long during its handshake is closed. */
  stalledAfterMs: number
  /** Whether this package created the client. Its own clients close a connection whose database is refused. */
  isOwn: boolean
}

/**
 * Stores the client's last error, publishes when a connection opens and when it ends, limits the handshake, and checks
 * the database of a client that is not our own. If several stores share the client, the options of the first one apply.
 */
export const watchClient = sharedWatches((redis: Redis, options: WatchOptions): ClientWatch => {
  const { stalledAfterMs, isOwn } = options
  const database = isOwn ? undefined : checkDatabase(redis, stalledAfterMs)
  let lastError: unknown
  const onReady = () => database?.start()
  const onClose = () => database?.stop()
  const onError = (error: Error) => {
    // After a connection has closed, ioredis also emits errors for the commands of its handshake.
    if (redis.status !== 'reconnecting' || lastError === undefined) lastError = error
  }
  redis.on('ready', onReady).on('close', onClose).on('error', onError)
  if (redis.status === 'ready') onReady()
  const unwatch = watchConnection(redis, stalledAfterMs)
  return {
    get isReady() {
      return isWritable(redis) && database?.isSelected !== false
    },
    get lastError() {
      return database?.refusal ?? lastError
    },
    stop() {
      redis.off('ready', onReady).off('close', onClose).off('error', onError)
      database?.stop()
      unwatch()
    },
  }
})

/** ioredis keeps the status `ready` from the end of a connection until its event `close`. */
export const isWritable = ({ status, stream }: Redis): boolean =>
  status === 'ready' && stream.writable

/** Publishes when the connection opens and when it ends, and limits its handshake. Returns a function that stops this. */
export function watchConnection(redis: Redis, stalledAfterMs: number): () => void {
  let isOpen = redis.status === 'ready'
  const onConnect = () => {
    isOpen = true
    publishConnection()
  }
  // ioredis also emits 'close' for each failed attempt to connect.
  const onClose = () => {
    if (isOpen) publishDisconnection()
    isOpen = false
  }
  redis.on('connect', onConnect).on('close', onClose)
  const unlimit = limitHandshake(redis, stalledAfterMs)
  return () => {
    redis.off('connect', onConnect).off('close', onClose)
    unlimit()
  }
}
