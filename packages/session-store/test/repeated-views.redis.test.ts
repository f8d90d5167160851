import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import calculateSlot from 'cluster-key-slot'
import { expect, onTestFinished, test } from 'vitest'
import {
  articleKeys,
  createSessionStore,
  partitionedKeys,
  type SessionStoreOptions,
  strategyNames,
} from '../src/index.ts'
import { recordViewOnce } from '../src/sessions/repeated-views.ts'
import { recordView } from '../src/updates.ts'

const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
const server = redisOfThisFile()
const idempotencyKey = 'a-view'

async function storeOn(socket: string, options: Partial<SessionStoreOptions> = {}) {
  const store = createSessionStore({ url: `unix://${socket}`, tokens, janitor: false, ...options })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

const marks = () => server.redis.keys('once:*')

test.each(strategyNames)(
  '%s: views with the same key count once and return the same result',
  async (strategy) => {
    const store = await storeOn(server.socket, { strategy })
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
  },
)

test('the marker of a view expires after ten minutes, and contains neither key nor session', async () => {
  const store = await storeOn(server.socket)
  const { token } = await store.login('ada')
  await store.recordView(token, 'book', { idempotencyKey })
  const [mark = ''] = await marks()
  expect(mark).toMatch(/^once:[\w-]{43}$/)
  expect(await server.redis.ttl(mark)).toBeGreaterThan(0)
  expect(await server.redis.ttl(mark)).toBeLessThanOrEqual(600)
})

test('a view of an ended session is undone once, and earlier views stay counted', async () => {
  const store = await storeOn(server.socket)
  const { token } = await store.login('ada')
  const { token: eve } = await store.login('eve')
  await store.recordView(token, 'book', { idempotencyKey })
  await store.logout(token)
  for (const key of [idempotencyKey, 'another', 'another']) {
    await expect(store.recordView(token, 'book', { idempotencyKey: key })).rejects.toMatchObject({
      code: 'ONETRIP_UNKNOWN_SESSION',
      retrySafe: false,
    })
  }
  expect(await server.redis.keys('viewed:?*')).toEqual([])
  expect(await store.recordView(eve, 'book')).toMatchObject({ views: 2 })
})

test('a view with an unknown outcome can be retried and counts once', async () => {
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

test.each([0, 256])('a key of %d characters is refused before anything is sent', async (length) => {
  const store = await storeOn(server.socket)
  const { token } = await store.login('ada')
  const key = 'x'.repeat(length)
  await expect(store.recordView(token, 'book', { idempotencyKey: key })).rejects.toMatchObject({
    code: 'ONETRIP_INVALID_INPUT',
    message: 'idempotencyKey must be a string of 1 to 255 characters',
  })
  expect(await store.popularItems()).toEqual([])
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

test('a view is five commands, with or without a key, and the marker is in the slot of the count', () => {
  for (const keys of [articleKeys, partitionedKeys(64)]) {
    const view = { id: 'a-session', item: 'book', idempotencyKey }
    const plain = recordView(keys, view, 1)
    expect(plain.commands).toHaveLength(5)
    const { commands } = recordViewOnce(keys, view, plain)
    expect(commands).toHaveLength(5)
    const [, , , counted, mark] = commands[3] ?? []
    if (keys !== articleKeys) expect(calculateSlot(`${counted}`)).toBe(calculateSlot(`${mark}`))
  }
})
