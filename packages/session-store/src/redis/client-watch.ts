import type { Redis } from 'ioredis'
import { publishConnection, publishDisconnection } from '../diagnostics.ts'
import { limitHandshake } from './handshake.ts'

/** Observes a client. */
export interface ClientWatch {
  /** Whether the client is connected. */
  readonly isReady: boolean
  /** The last error that the client emitted. */
  readonly lastError: unknown
  stop(): void
}

/** Stores the client's last error, publishes when a connection opens and when it ends, and limits the handshake. */
export function watchClient(redis: Redis, stalledAfterMs: number): ClientWatch {
  let lastError: unknown
  redis.on('error', (error: Error) => {
    // After a connection has closed, ioredis also emits errors for the commands of its handshake.
    if (redis.status !== 'reconnecting' || lastError === undefined) lastError = error
  })
  const unwatch = watchConnection(redis, stalledAfterMs)
  return {
    get isReady() {
      return isWritable(redis)
    },
    get lastError() {
      return lastError
    },
    stop: unwatch,
  }
}

/** ioredis keeps the status `ready` from the end of a connection until its event `close`. */
export const isWritable = ({ status, stream }: Redis): boolean =>
  status === 'ready' && stream.writable

/** Publishes when the connection opens and when it ends, and limits its handshake. Returns a function that stops this. */
function watchConnection(redis: Redis, stalledAfterMs: number): () => void {
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
