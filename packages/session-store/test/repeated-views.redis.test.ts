import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import calculateSlot from 'cluster-key-slot'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import {
  articleKeys,
  createSessionStore,
  type Sender,
  type SessionStore,
  type SessionStoreOptions,
  strategyNames,
} from '../src/core/index.ts'
import type { CommandList } from '../src/core/operation.ts'
import { pipeline } from '../src/core/sending/wires.ts'
import { recordViewOnce } from '../src/core/sessions/repeated-views.ts'
import { recordView } from '../src/core/sessions/view-operations.ts'
import { idOf } from './fixture.ts'
import { layouts } from './retention-fixture.ts'

const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
const server = redisOfThisFile()
const idempotencyKey = 'a-view'

async function storeOn(socket: string, options: Partial<SessionStoreOptions> = {}) {
  const store = createSessionStore({
    url: `unix://${socket}`,
    tokens,
    janitor: 'elsewhere',
    ...options,
  })
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

describe.each(layouts)('%s: the session of a repeated view has ended', (layout, keys) => {
  const gone = { code: 'ONETRIP_UNKNOWN_SESSION', retrySafe: false }
  const counted = {
    ...gone,
    mayHaveWritten: true,
    message:
      'the session does not exist or has ended; a view of an earlier call with this idempotency key may still be counted',
  }
  const undone = {
    ...gone,
    mayHaveWritten: false,
    message: 'the session does not exist or has ended',
  }
  const view = (store: SessionStore, token: string) =>
    store.recordView(token, 'book', { idempotencyKey })

  test('before the first call, whose reply was lost', async () => {
    const redis = await redisForThisTest()
    const store = await storeOn(redis.socket, { keys, deadlineMs: 500 })
    const patient = await storeOn(redis.socket, { keys })
    const admin = new Redis(redis.socket)
    onTestFinished(() => admin.disconnect())
    const { token } = await patient.login('ada')
    await patient.logout(token)
    redis.program.signal('SIGSTOP')
    await expect(view(store, token)).rejects.toMatchObject({
      code: 'ONETRIP_OUTCOME_UNKNOWN',
      retrySafe: true,
    })
    redis.program.signal('SIGCONT')
    await expect.poll(() => admin.exists(keys.viewed(idOf(token)))).toBe(1) // it was executed
    // With partitioned keys, the script that counts cannot check the session.
    const isExact = layout === 'articles'
    await expect(view(patient, token)).rejects.toMatchObject(isExact ? undone : counted)
    expect(await patient.popularItems()).toEqual(isExact ? [] : [{ item: 'book', views: 1 }])
    expect(await admin.exists(keys.viewed(idOf(token)))).toBe(0)
  })

  test('after the first call, which was acknowledged: its view stays counted', async () => {
    const store = await storeOn(server.socket, { keys })
    const { token } = await store.login('ada')
    await view(store, token)
    await store.logout(token)
    for (const _ of [1, 2]) await expect(view(store, token)).rejects.toMatchObject(counted)
    expect(await store.popularItems()).toEqual([{ item: 'book', views: 1 }])
  })

  test('and the first call arrives after its retry: it counts nothing', async () => {
    const store = await storeOn(server.socket, { keys })
    const { token } = await store.login('ada')
    await store.logout(token)
    const lists: CommandList[] = []
    const sender: Sender = {
      name: 'recording',
      send: async (list) => {
        lists.push(list)
        return [new Error('the connection was lost')]
      },
      close: async () => undefined,
    }
    const cutOff = createSessionStore({ sender, keys, tokens, janitor: 'elsewhere' })
    await expect(view(cutOff, token)).rejects.toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
    for (const _ of [1, 2]) await expect(view(store, token)).rejects.toMatchObject(undone)
    const [late] = lists
    await pipeline.send(server.redis, late?.commands ?? [])
    expect(await store.popularItems()).toEqual([])
    await expect(view(store, token)).rejects.toMatchObject(undone)
    await cutOff.close()
  })
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

test('a key adds no command, and the marker is in the slot of the count', () => {
  for (const keys of [articleKeys, partitionedKeys(64)]) {
    const input = { id: 'a-session', item: 'book', idempotencyKey }
    const view = recordView(keys, input, 1)
    expect(view.commands).toHaveLength(5)
    expect(recordViewOnce(keys, input, { view, sameServer: true }).commands).toHaveLength(4)
    const { commands } = recordViewOnce(keys, input, { view, sameServer: false })
    expect(commands).toHaveLength(5)
    const [, , , counted, mark] = commands[3] ?? []
    if (keys !== articleKeys) expect(calculateSlot(`${counted}`)).toBe(calculateSlot(`${mark}`))
  }
})
