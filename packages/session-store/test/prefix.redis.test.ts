import { testCluster } from '@onetrip/stack/testing/cluster.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { clusterSender, createCluster, partitionedKeys } from '../src/cluster/index.ts'
import {
  articleKeys,
  connectionChannel,
  createSessionStore,
  prefixedKeys,
  type SessionStoreOptions,
  safeRedisOptions,
  strategyNames,
} from '../src/core/index.ts'
import { Clock, sweepOnly, withAnyClock } from './retention-fixture.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

const server = redisOfThisFile()
const secrets = ['a-secret-for-tests-a-secret-for-tests']

// All special characters of SCAN patterns.
const prefix = 'sh*p [a-z]?\\é:'

function storeForThisTest(options: Partial<SessionStoreOptions>, clock = new Clock()) {
  const tokens = { secrets, clock: () => clock.ms }
  const store = createSessionStore({ tokens, deadlineMs: 20_000, janitor: 'elsewhere', ...options })
  onTestFinished(() => store.close())
  return withAnyClock(store)
}

/** A client for several stores, closed when the current test ends. */
async function sharedClient(): Promise<Redis> {
  const client = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  await client.connect()
  return client
}

/** Calls everything that uses a key, including the janitor's three tasks. */
async function useEverything(options: Partial<SessionStoreOptions>): Promise<void> {
  const clock = new Clock()
  const store = storeForThisTest({ ...options, maxSessionsPerUser: 2 }, clock)
  await store.ready()
  const first = await store.login('ada')
  clock.pass(1)
  const second = await store.login('ada')
  clock.pass(1)
  const third = await store.login('ada')
  await expect(store.recordView(first.token, 'book')).rejects.toThrow(
    'the session does not exist or has ended',
  )
  expect(await store.recordView(third.token, 'book')).toEqual({ user: 'ada', views: 1 })
  expect(await store.viewedItems(third.token)).toHaveLength(1)
  expect(await store.popularItems()).toEqual([{ item: 'book', views: 1 }])
  expect((await store.userSessions(third.token)).sessions).toHaveLength(2)
  expect((await store.countAttempts(['ada'], 60)).counts).toEqual([1])
  await runUpdateToken(store, issueToken(store), 'bob', 'pen')
  expect(await store.recentSessions()).toHaveLength(3)
  await store.logout(second.token)
  const janitor = store.janitor({ maxSessions: 1, rescaleEverySeconds: 0 })
  expect(await janitor.runOnce()).toMatchObject({ evicted: 1 })
}

describe.each(Object.entries({ articles: articleKeys, partitioned: partitionedKeys(8) }))(
  '%s keys',
  (_name, keys) => {
    test.each(strategyNames)('%s: every key begins with the prefix', async (strategy) => {
      await useEverything({ url: `unix://${server.socket}`, keys, prefix, strategy })
      const names = await server.redis.keys('*')
      expect(names.length).toBeGreaterThan(5)
      expect(names.filter((name) => !name.startsWith(prefix))).toEqual([])
    })

    test('stores with different prefixes share nothing, even in the sweep', async () => {
      const client = await sharedClient()
      const clock = new Clock()
      const plain = storeForThisTest({ client, keys }, clock)
      const shop = storeForThisTest({ client, keys, prefix }, clock)
      const other = storeForThisTest({ client, keys, prefix: 'sh0p a0:' }, clock)
      for (const store of [plain, shop, other]) {
        const { token } = await store.login('ada')
        await store.recordView(token, 'book')
      }
      const { token } = await plain.login('eve')
      await expect(shop.checkToken(token)).rejects.toMatchObject({
        code: 'ONETRIP_UNKNOWN_SESSION',
      })

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
  const store = storeForThisTest({ client: await sharedClient(), prefix: 'shop:' }, clock)
  const token = issueToken(store)
  const [id = ''] = token.split('.')
  const before = new Redis(server.socket, { keyPrefix: 'shop:' })
  onTestFinished(() => before.disconnect())
  await before.hset(articleKeys.login(id), id, 'ada')
  await before.zadd(articleKeys.recent(id), clock.seconds, id)
  expect(await store.recordView(token, 'book')).toEqual({ user: 'ada', views: 1 })
})

test('in a cluster, the keys are on all nodes', async () => {
  const nodes = await testCluster()
  onTestFinished(() => nodes.stop())
  const client = createCluster(nodes.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  onTestFinished(() => client.disconnect())
  await useEverything({
    url: undefined,
    sender: clusterSender({ client }),
    keys: partitionedKeys(16),
    prefix,
  })
  const names = await Promise.all(nodes.nodes.map(({ admin }) => admin.keys('*')))
  expect(Math.min(...names.map(({ length }) => length))).toBeGreaterThan(0)
  expect(names.flat().filter((name) => !name.startsWith(prefix))).toEqual([])
})

test('many stores on one client: no warning, and one message for its connection', async () => {
  const warnings: string[] = []
  const onWarning = (warning: Error) => void warnings.push(warning.name)
  let opened = 0
  const onConnection = () => void opened++
  process.on('warning', onWarning)
  connectionChannel.subscribe(onConnection)
  onTestFinished(() => {
    process.off('warning', onWarning)
    connectionChannel.unsubscribe(onConnection)
  })
  const client = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  const listeners = () => client.eventNames().map((event) => [event, client.listenerCount(event)])
  const before = listeners()
  const maxListeners = vi.spyOn(client, 'setMaxListeners')
  const tenants = Array.from({ length: 40 }, (_, tenant) =>
    storeForThisTest({ client, prefix: `tenant:${tenant}:` }),
  )
  await Promise.all(tenants.map((store) => store.ready()))
  await Promise.all(tenants.map((store) => store.login('ada')))
  await Promise.all(tenants.map((store) => store.close()))
  expect(await server.redis.keys('tenant:*:login:')).toHaveLength(40)
  expect(listeners()).toEqual(before)
  expect(maxListeners).not.toHaveBeenCalled()
  await new Promise(setImmediate) // warnings are emitted in the next tick
  expect(warnings).toEqual([])
  expect(opened).toBe(1)
})
