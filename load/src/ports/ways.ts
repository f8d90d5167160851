import {
  createSessionStore,
  parseRedisUrl,
  type RedisAddress,
  type SessionStore,
  strategyOf,
} from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { shortConnection } from '../../../packages/session-store/src/client.ts'
import { sendOneByOne } from '../../../packages/session-store/src/send.ts'
import type { Way } from './cases.ts'

const DEADLINE_MS = 2_000

/** A store that records views by a connection each, or by one for all. */
export function storeBy(way: Way, url: string): SessionStore {
  const options = { tokens: { secrets: [newSecret()] }, janitor: false } as const
  return way === 'closes-itself'
    ? createSessionStore({ ...options, strategy: closingItself(parseRedisUrl(url)) })
    : createSessionStore({ ...options, strategy: way, url, deadlineMs: DEADLINE_MS })
}

/**
 * As `naive-lean`, but it just closes its connection, as most clients do, instead of asking Redis to
 * close it (QUIT). Whoever closes first keeps the connection's ports in TIME_WAIT.
 */
const closingItself = (address: RedisAddress) =>
  strategyOf({
    name: 'closes-itself',
    async send({ commands }) {
      const redis = shortConnection(address, DEADLINE_MS, true)
      let reason: unknown
      redis.on('error', (error: Error) => {
        reason = error
      })
      try {
        await redis.connect()
        return await sendOneByOne(redis, commands)
      } catch (error) {
        throw reason ?? error
      } finally {
        if (redis.status !== 'end') redis.disconnect()
      }
    },
    close: async () => {},
  })

/** What the kernel said, behind the errors of the store and the client: `EADDRNOTAVAIL`. */
export function kindOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at.name !== 'StoreError' && 'code' in at) return String(at.code)
  }
  return error instanceof Error ? error.message : String(error)
}
