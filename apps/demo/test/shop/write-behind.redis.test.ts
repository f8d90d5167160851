import { createSessionStore, type RoundTrip, roundTripChannel } from '@onetrip/session-store'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { type WriteBehindOptions, writeBehind } from '../../src/shop/write-behind.ts'
import { secret } from '../support.ts'

const NEVER_MS = 600_000

/** Counters by key, written with write-behind. */
async function countsForThisTest(
  options: Partial<WriteBehindOptions<number>> & { deadlineMs?: number } = {},
) {
  const redis = await redisForThisTest()
  const url = `unix://${redis.socket}`
  const { deadlineMs = 30_000 } = options
  const store = createSessionStore({
    url,
    deadlineMs,
    tokens: { secrets: [secret] },
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  await store.ready()
  const admin = new Redis(redis.socket, { maxRetriesPerRequest: null })
  admin.on('error', () => {})
  onTestFinished(() => admin.disconnect())
  const results = { written: 0, dropped: 0 }
  const counts = writeBehind<number>({
    store,
    operation: (changes) => ({
      commands: [...changes].map(([key, count]) => ['INCRBY', key, count]),
      readOnly: false,
      read: () => undefined,
    }),
    merge: (older, newer) => older + newer,
    intervalMs: 10,
    maxPending: 10_000,
    onResult(result, keys) {
      results[result] += keys
    },
    ...options,
  })
  return { redis, store, admin, counts, results }
}

test('changes of several keys take one round trip, those of a key one command', async () => {
  const { admin, counts, results } = await countsForThisTest({ intervalMs: NEVER_MS })
  const roundTrips: number[] = []
  const listen = (message: unknown) => void roundTrips.push((message as RoundTrip).commands)
  roundTripChannel.subscribe(listen)
  onTestFinished(() => void roundTripChannel.unsubscribe(listen))
  for (let index = 0; index < 100; index++) counts.add(`key-${index % 10}`, 1)
  await counts.flush()
  expect(roundTrips).toEqual([10])
  expect(await admin.mget('key-0', 'key-9')).toEqual(['10', '10'])
  for (let index = 0; index < 1_200; index++) counts.add(`key-${index}`, 1)
  await counts.close()
  expect(roundTrips).toEqual([10, 500, 500, 200])
  expect(results).toEqual({ written: 1_210, dropped: 0 })
  counts.add('late', 1)
  expect(results.dropped).toBe(1)
})

test('a change is written after the interval', async () => {
  const { admin, counts } = await countsForThisTest()
  counts.add('key', 1)
  await expect.poll(() => admin.get('key')).toBe('1')
  counts.add('key', 1)
  await expect.poll(() => admin.get('key')).toBe('2')
})

test('while Redis is down, changes wait; they are written once when it is back', async () => {
  const { redis, store, admin, counts, results } = await countsForThisTest()
  redis.program.signal('SIGKILL')
  await expect.poll(() => store.info?.ready).toBe(0)
  for (let index = 0; index < 5; index++) {
    counts.add('key', 1)
    await counts.flush()
  }
  await redis.restart()
  await expect.poll(() => admin.get('key')).toBe('5')
  expect(results).toEqual({ written: 1, dropped: 0 })
})

test('changes that Redis may have executed are not written again', async () => {
  const { redis, admin, counts, results } = await countsForThisTest({ deadlineMs: 200 })
  redis.program.signal('SIGSTOP')
  counts.add('key', 1)
  await expect.poll(() => results.dropped).toBe(1)
  redis.program.signal('SIGCONT')
  await expect.poll(() => admin.get('key')).toBe('1')
})

test('above the maximum, changes of further keys are dropped', async () => {
  const { redis, store, admin, counts, results } = await countsForThisTest({
    maxPending: 2,
    intervalMs: NEVER_MS,
  })
  redis.program.signal('SIGKILL')
  await expect.poll(() => store.info?.ready).toBe(0)
  for (const key of ['a', 'b', 'c', 'a']) counts.add(key, 1)
  await counts.flush() // they are pending again
  counts.add('d', 1)
  expect(results).toEqual({ written: 0, dropped: 2 })
  await redis.restart()
  await store.ready(30_000)
  await counts.flush()
  expect(await admin.mget('a', 'b', 'c', 'd')).toEqual(['2', '1', null, null])
})
