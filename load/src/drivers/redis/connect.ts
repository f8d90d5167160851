import type { RedisOptions } from '@onetrip/session-store'
import { Redis } from 'ioredis'

/**
 * Connects an ioredis client that neither reconnects nor retries.
 *
 * @throws the socket's error. (`redis.connect()` rejects only with "Connection is closed".)
 */
export async function connectOnce(options: RedisOptions): Promise<Redis> {
  const never = { maxRetriesPerRequest: 0, retryStrategy: null }
  const redis = new Redis({ ...options, ...never, lazyConnect: true })
  let reason: unknown
  redis.on('error', (error) => {
    reason ??= error
  })
  await redis.connect().catch((error) => {
    throw reason ?? error
  })
  return redis
}
