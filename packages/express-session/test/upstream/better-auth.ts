import { betterAuthStorage } from '../../../better-auth/src/index.ts'
import { connect, nextPrefix, sessions } from './stores.ts'

await connect()

/** Our storage, and a Map with the same keys, which the tests read. */
export function createStringSecondaryStorage(
  map: Map<string, unknown>,
  parse = (value: string): unknown => value,
) {
  let storage = betterAuthStorage(sessions, nextPrefix())
  const keys = new Set<string>()
  const clear = map.clear.bind(map)
  map.clear = () => {
    clear()
    keys.clear()
    storage = betterAuthStorage(sessions, nextPrefix())
  }
  async function refresh(key: string): Promise<void> {
    for (const each of keys.add(key)) {
      const value = await storage.get(each)
      if (value === null) map.delete(each)
      else map.set(each, parse(`${value}`))
    }
  }
  return {
    async get(key: string) {
      const value = await storage.get(key)
      return value === null ? null : parse(`${value}`)
    },
    async set(key: string, value: string, ttl?: number) {
      await storage.set(key, value, ttl)
      await refresh(key)
    },
    async delete(key: string) {
      await storage.delete(key)
      await refresh(key)
    },
    getAndDelete: (key: string) => storage.getAndDelete(key),
    increment: (key: string, ttl: number) => storage.increment(key, ttl),
  }
}

/** As above, with values that are no longer JSON. */
export const createParsedSecondaryStorage = (map: Map<string, unknown>) =>
  createStringSecondaryStorage(map, JSON.parse)
