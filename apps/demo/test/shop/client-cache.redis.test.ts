import { freePorts } from '@onetrip/stack/ports.ts'
import { startRelay } from '@onetrip/stack/relay/process.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { type ClientCacheOptions, clientCache } from '../../src/shop/client-cache.ts'

const server = redisOfThisFile()

/** A cache of strings that records the result of each read. */
function cacheForThisTest(options: Partial<ClientCacheOptions<string | null>> = {}) {
  const reads: string[] = []
  const cache = clientCache<string | null>({
    url: `unix://${server.socket}`,
    prefix: 'cached:',
    maxEntries: 100,
    checkEveryMs: 1_000,
    deadlineMs: 30_000,
    read: (key) => server.redis.get(key),
    onRead: (how) => void reads.push(how),
    ...options,
  })
  onTestFinished(() => cache.close())
  const lastRead = async (key: string) => {
    const value = await cache.get(key)
    return { value, how: reads.at(-1) }
  }
  /** Resolves when the cache is on. */
  const works = () =>
    expect.poll(async () => (await lastRead('cached:probe')).how, { interval: 5 }).toBe('hit')
  return { cache, reads, lastRead, works }
}

const trackers = async () =>
  String(await server.redis.client('LIST'))
    .split('\n')
    .filter((client) => /flags=\S*B/.test(client) && client.includes('sub=1'))
    .map((client) => /^id=(\d+)/.exec(client)?.[1] ?? '')

test('a value is read once until it changes', async () => {
  const { cache, reads, lastRead, works } = cacheForThisTest()
  await server.redis.set('cached:a', 'old')
  await works()
  reads.length = 0
  for (let index = 0; index < 100; index++) expect(await cache.get('cached:a')).toBe('old')
  expect(reads.filter((how) => how === 'hit')).toHaveLength(99)
  await server.redis.set('other:a', 'new') // another prefix
  await server.redis.set('cached:a', 'new')
  await expect
    .poll(() => lastRead('cached:a'), { interval: 1 })
    .toEqual({ value: 'new', how: 'hit' })
  await server.redis.del('cached:a')
  await expect.poll(() => cache.get('cached:a'), { interval: 1 }).toBeNull()
  await server.redis.set('cached:a', 'back')
  await expect.poll(() => cache.get('cached:a'), { interval: 1 }).toBe('back')
  await server.redis.flushall()
  await expect.poll(() => cache.get('cached:a'), { interval: 1 }).toBeNull()
})

test('a value that changes during its read is not cached', async () => {
  const replies: PromiseWithResolvers<string>[] = []
  const { cache, works } = cacheForThisTest({
    read(key) {
      if (key !== 'cached:a') return server.redis.get(key)
      const reply = Promise.withResolvers<string>()
      replies.push(reply)
      return reply.promise
    },
  })
  await works()
  const [first, same] = [cache.get('cached:a'), cache.get('cached:a')]
  expect(replies).toHaveLength(1) // concurrent callers share a read
  const kept = cache.entries
  await server.redis.set('cached:a', 'new')
  await expect.poll(() => cache.entries).toBe(kept - 1)
  replies[0]?.resolve('old')
  expect(await Promise.all([first, same])).toEqual(['old', 'old'])
  const second = cache.get('cached:a')
  expect(replies).toHaveLength(2)
  replies[1]?.resolve('new')
  expect(await second).toBe('new')
  expect(await cache.get('cached:a')).toBe('new')
  expect(replies).toHaveLength(2)
})

test('a failed read is not cached', async () => {
  let failing = false
  const { cache, works } = cacheForThisTest({
    async read() {
      if (failing) throw new Error('no connection')
      return 'value'
    },
  })
  await works()
  failing = true
  await expect(cache.get('cached:a')).rejects.toThrow('no connection')
  failing = false
  expect(await cache.get('cached:a')).toBe('value')
})

test('nothing is cached from the loss of the connection until it is back', async () => {
  const refusals: string[] = []
  const { cache, lastRead, works } = cacheForThisTest({
    onRejected: ({ message }) => void refusals.push(message),
  })
  await server.redis.set('cached:a', 'old')
  await works()
  await expect.poll(() => lastRead('cached:a')).toEqual({ value: 'old', how: 'hit' })
  const [id = ''] = await trackers()
  expect(refusals).toEqual([])
  await server.redis.call('ACL', 'SETUSER', 'default', '-client|tracking')
  onTestFinished(() => server.redis.call('ACL', 'SETUSER', 'default', '+@all').then(() => {}))
  await server.redis.client('KILL', 'ID', id)
  await expect.poll(() => cache.entries).toBe(0)
  await server.redis.set('cached:a', 'new') // not reported
  expect(await lastRead('cached:a')).toEqual({ value: 'new', how: 'bypass' })
  await server.redis.set('cached:a', 'newer')
  expect(await lastRead('cached:a')).toEqual({ value: 'newer', how: 'bypass' })
  await expect.poll(() => refusals[0]).toContain('NOPERM')
  await server.redis.call('ACL', 'SETUSER', 'default', '+@all')
  await works()
  expect(await trackers()).toHaveLength(1)
})

test('a stalled connection makes values stale only up to the limit', async () => {
  const relay = await startRelay({ to: server.socket })
  onTestFinished(() => relay.stop())
  const { cache, lastRead, works } = cacheForThisTest({
    url: `redis://${relay.address}`,
    checkEveryMs: 100,
    deadlineMs: 400,
  })
  await server.redis.set('cached:a', 'old')
  await works()
  await relay.command('stall')
  await expect.poll(() => lastRead('cached:a'), { interval: 1 }).toMatchObject({ value: 'old' })
  await server.redis.set('cached:a', 'new')
  const changedAt = performance.now()
  let staleAt = changedAt
  for (;;) {
    const askedAt = performance.now()
    if ((await cache.get('cached:a')) === 'new') break
    staleAt = askedAt
  }
  expect(staleAt - changedAt).toBeLessThanOrEqual(500)
  await relay.command('resume')
  await works()
})

test('keeps the most recently used values up to the maximum', async () => {
  const { cache, reads, works } = cacheForThisTest({ maxEntries: 3 })
  await works()
  for (const key of ['a', 'b', 'c', 'a', 'd']) await cache.get(`cached:${key}`)
  expect(cache.entries).toBe(3)
  reads.length = 0
  for (const key of ['a', 'c', 'd']) await cache.get(`cached:${key}`)
  expect(reads).toEqual(['hit', 'hit', 'hit'])
  await cache.get('cached:b')
  expect(reads.at(-1)).toBe('miss')
})

test('with 0 entries there is no connection; without Redis every read bypasses the cache', async () => {
  const before = await trackers()
  const none = cacheForThisTest({ maxEntries: 0 })
  expect(await none.lastRead('cached:a')).toEqual({ value: null, how: 'bypass' })
  expect(await trackers()).toEqual(before)
  const [port = 0] = await freePorts(1)
  const alone = cacheForThisTest({ url: `redis://127.0.0.1:${port}`, read: async () => 'value' })
  expect(await alone.lastRead('cached:a')).toEqual({ value: 'value', how: 'bypass' })
})
