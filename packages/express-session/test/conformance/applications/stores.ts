import { SessionStore } from '@onetrip/session-store'
import { Redis } from 'ioredis'

/** Our store, for adapters: no janitor is needed. */
export async function storeOn(
  redisPort: number,
  secrets: readonly string[],
): Promise<SessionStore> {
  const redis = `redis://127.0.0.1:${redisPort}`
  const store = new SessionStore({ redis, tokens: { secrets: [...secrets] }, janitor: 'elsewhere' })
  await store.ready()
  return store
}

/** Lets all keys that have an expiry expire now. */
export async function expireKeys(redisPort: number): Promise<void> {
  const client = new Redis(redisPort)
  for (const key of await client.keys('*')) {
    if ((await client.ttl(key)) > 0) await client.pexpire(key, 0)
  }
  client.disconnect()
}
