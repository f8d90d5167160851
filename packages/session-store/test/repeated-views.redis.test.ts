import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { articleKeys as keys, type SessionStoreOptions } from '../src/index.ts'
import { gone, idOf, inMemory, readyStore } from './fixture.ts'
import { layouts } from './retention-fixture.ts'

const server = redisOfThisFile()
const idempotencyKey = 'a-view'

const storeOn = (socket: string, options: Partial<SessionStoreOptions> = {}) =>
  readyStore({ redis: `unix://${socket}`, ...options })

test('views with the same key count once and return the same result', async () => {
  const store = await storeOn(server.socket)
  const [{ token: ada }, { token: eve }] = await Promise.all([
    store.login('ada'),
    store.login('eve'),
  ])
  const repeated = await Promise.all(
    Array.from({ length: 20 }, () => store.recordView(ada, 'book', { idempotencyKey })),
  )
  expect(repeated).toEqual(repeated.map(() => ({ user: 'ada', views: 1 })))
  expect(await store.recordView(ada, 'book')).toEqual({ user: 'ada', views: 2 })
  expect(await store.recordView(ada, 'book', { idempotencyKey })).toMatchObject({ views: 1 })
  expect(await store.recordView(ada, 'pen', { idempotencyKey })).toMatchObject({ views: 1 })
  expect(await store.recordView(eve, 'book', { idempotencyKey })).toMatchObject({ views: 3 })
  expect(await store.popularItems()).toEqual([
    { item: 'book', views: 3 },
    { item: 'pen', views: 1 },
  ])
})

test('the marker of a view expires after ten minutes, and contains neither key nor session', async () => {
  const store = await storeOn(server.socket)
  const { token } = await store.login('ada')
  await store.recordView(token, 'book', { idempotencyKey })
  const [mark = ''] = await server.redis.keys('once:*')
  expect(mark).toMatch(/^once:[\w-]{43}$/)
  expect(await server.redis.ttl(mark)).toBeGreaterThan(0)
  expect(await server.redis.ttl(mark)).toBeLessThanOrEqual(600)
})

test('a call after the end of the session says whether a view may be counted', async () => {
  const store = await storeOn(server.socket)
  const { token } = await store.login('ada')
  await store.recordView(token, 'book', { idempotencyKey })
  await store.logout(token)
  for (const [key, mayHaveWritten] of [
    [idempotencyKey, true],
    [idempotencyKey, true],
    ['another', false],
    ['another', false],
  ] as const) {
    const view = store.recordView(token, 'book', { idempotencyKey: key })
    await expect(view).rejects.toMatchObject({ ...gone, retrySafe: false, mayHaveWritten })
  }
  expect(await server.redis.exists(keys.viewed(idOf(token)))).toBe(0)
  expect(await store.popularItems()).toEqual([{ item: 'book', views: 1 }])
})

test('a key is refused unless all keys are on one Redis', async () => {
  const store = await storeOn(server.socket, { keys: layouts.at(-1)?.[1] })
  const { token } = await store.login('ada')
  await expect(store.recordView(token, 'book', { idempotencyKey })).rejects.toMatchObject({
    code: 'ONETRIP_INVALID_INPUT',
    message: 'an idempotency key needs all keys on one Redis',
  })
  expect(await store.popularItems()).toEqual([])
})

test.skipIf(inMemory)('a view with an unknown outcome can be retried and counts once', async () => {
  const redis = await redisForThisTest()
  const store = await storeOn(redis.socket, { deadlineMs: 500 })
  const patient = await storeOn(redis.socket)
  const { token } = await patient.login('ada')
  redis.program.signal('SIGSTOP')
  await expect(store.recordView(token, 'book', { idempotencyKey })).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    retrySafe: true,
  })
  redis.program.signal('SIGCONT')
  expect(await patient.recordView(token, 'book', { idempotencyKey })).toMatchObject({ views: 1 })
  expect(await patient.popularItems()).toEqual([{ item: 'book', views: 1 }])
})

test('a repeated view also reads the data of the session', async () => {
  const store = await storeOn(server.socket)
  const { token } = await store.login('ada')
  await store.patch(token, { cart: ['book'] })
  const view = () => store.recordView(token, 'book', { idempotencyKey, data: true })
  const data = { fields: { cart: ['book'] }, version: 1 }
  expect([await view(), await view()]).toEqual([
    { user: 'ada', views: 1, data },
    { user: 'ada', views: 1, data },
  ])
})
