import type { Redis } from 'ioredis'

/** A connection that has not replied for so many deadlines is closed and reopened. */
export const DEADLINES_UNTIL_STALLED = 5

/**
 * Closes a connection that gets no reply during the handshake, so that the client opens a new one. ioredis's
 * `connectTimeout` ends before the first command of the handshake: a proxy accepts connections even if it cannot reach
 * Redis.
 *
 * @returns Function that ends the observation.
 */
export function limitHandshake(redis: Redis, timeoutMs: number): () => void {
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
  if (redis.status === 'connect') start()
  return () => {
    stop()
    redis.off('connect', start).off('ready', stop).off('close', stop)
  }
}

/** False while Redis loads its data: ioredis then repeats INFO, with pauses. */
const waitsForReply = (redis: Redis): boolean =>
  (redis as unknown as { commandQueue?: { length: number } }).commandQueue?.length !== 0
