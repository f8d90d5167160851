import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { articleKeys, prefixedKeys, type SessionStoreOptions } from '../src/index.ts'
import { adminForThisTest, gone, idOf, newStore, tokens } from './fixture.ts'
import { keysInParts } from './keys-in-parts.ts'
import { Clock, sweepOnly, withAnyClock } from './retention-fixture.ts'
import { issueToken } from './write-session.ts'

const server = redisOfThisFile()

// All special characters of SCAN patterns.
const prefix = 'sh*p [a-z]?\\é:'

const storeForThisTest = (options: Partial<SessionStoreOptions>, clock = new Clock()) =>
  withAnyClock(newStore({ tokens: { ...tokens, clock: () => clock.ms }, ...options }))

describe.each(Object.entries({ articles: articleKeys, 'in parts': keysInParts(8) }))(
  '%s keys',
  (_name, keys) => {
    test('every key begins with the prefix', async () => {
      const clock = new Clock()
      const store = storeForThisTest({ redis: `unix://${server.socket}`, keys, prefix }, clock)
      await store.ready()
      const { token } = await store.login('ada')
      const once = keys.parts().length === 1 ? { idempotencyKey: 'one' } : {}
      await store.recordView(token, 'book', once)
      await store.patch(token, { cart: ['book'] })
      await store.countAttempts(['ada'], 60)
      await store.janitor({ rescaleEverySeconds: 0 }).runOnce()
      const names = await server.redis.keys('*')
      expect(names.length).toBeGreaterThan(7)
      expect(names.filter((name) => !name.startsWith(prefix))).toEqual([])
      expect(await store.endUserSessions('ada')).toBe(1)
    })

    test('stores with different prefixes share nothing, even in the sweep', async () => {
      const redis = `unix://${server.socket}`
      const clock = new Clock()
      const plain = storeForThisTest({ redis, keys }, clock)
      const shop = storeForThisTest({ redis, keys, prefix }, clock)
      const other = storeForThisTest({ redis, keys, prefix: 'sh0p a0:' }, clock)
      for (const store of [plain, shop, other]) {
        await store.ready()
        const { token } = await store.login('ada')
        await store.recordView(token, 'book')
      }
      const { token } = await plain.login('eve')
      await expect(shop.checkToken(token)).rejects.toMatchObject(gone)

      for (const { login, recent } of prefixedKeys(prefix, keys).parts()) {
        await server.redis.del(login, recent)
      }
      clock.pass(3600)
      const run = { ...sweepOnly, maxSessions: 10 }
      expect(await plain.janitor(run).runOnce()).toMatchObject({ swept: 0 })
      expect(await other.janitor(run).runOnce()).toMatchObject({ swept: 0 })
      expect(await shop.janitor(run).runOnce()).toMatchObject({ swept: 2 }) // views, list entry
      expect(await plain.popularItems()).toEqual([{ item: 'book', views: 1 }])
      expect(await plain.recentSessions()).toHaveLength(2)
      expect(await other.recentSessions()).toHaveLength(1)
    })
  },
)

test('prefix makes the same keys as keyPrefix of ioredis, so existing sessions are found', async () => {
  const clock = new Clock()
  const store = storeForThisTest({ redis: `unix://${server.socket}`, prefix: 'shop:' }, clock)
  await store.ready()
  const token = issueToken(store)
  const id = idOf(token)
  const before = adminForThisTest(server.socket, { keyPrefix: 'shop:' })
  await before.hset(articleKeys.login(id), id, 'ada')
  await before.zadd(articleKeys.recent(id), clock.seconds, id)
  expect(await store.recordView(token, 'book')).toEqual({ user: 'ada', views: 1 })
})
