import type { Redis } from 'ioredis'
import type { Subscription } from './sender.ts'

/**
 * Subscribes with a connection of its own, which does not reconnect.
 *
 * @param redis A lazy client that does not retry.
 */
export function subscribeWith(
  redis: Redis,
  channels: readonly string[],
  onMessage: (message: string) => void,
): Subscription {
  const { promise: lost, resolve: onLost } = Promise.withResolvers<void>()
  redis.on('error', () => {}) // `ready` rejects, or `lost` resolves
  redis.once('end', onLost)
  redis.on('message', (_, message) => onMessage(message))
  return {
    ready: redis.connect().then(() => redis.subscribe(...channels)),
    lost,
    close() {
      redis.disconnect()
      redis.stream?.destroy() // disconnect() waits for the peer
    },
  }
}
