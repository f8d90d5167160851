import { describe, expect, test } from 'vitest'
import { articleKeys, type SessionStoreOptions } from '../src/index.ts'
import { gone, idOf } from './fixture.ts'
import { Clock, layouts, retentionServer } from './retention-fixture.ts'

const server = retentionServer()
const clock = new Clock()

const storeForThisTest = (options: Partial<SessionStoreOptions> = {}) =>
  server.storeForThisTest(clock, options)

describe.each(layouts)('%s', (_, keys) => {
  test('checks and views return data, and patches change it field by field', async () => {
    const store = await storeForThisTest({ keys })
    const { token } = await store.login('ada')
    expect(await store.data(token)).toEqual({ fields: {}, version: 0 })
    const cart = [{ item: 'book', count: 2, gift: null }, 'überraschung 🦊']
    expect(await store.patch(token, { cart, theme: 'dark', constructor: 1 })).toEqual({
      version: 1,
    })
    expect(await store.patch(token, { theme: undefined, locale: 'de' })).toEqual({ version: 2 })
    const data = { fields: { cart, locale: 'de', constructor: 1 }, version: 2 }
    expect(await store.data(token)).toEqual(data)
    const lastSeenAt = clock.ms
    expect(await store.checkToken(token, { data: true })).toEqual({
      user: 'ada',
      lastSeenAt,
      data,
    })
    const view = await store.recordView(token, 'book', { data: true })
    expect(view).toEqual({ user: 'ada', views: expect.any(Number), data })
    expect(await store.checkToken(token, { data: false })).toEqual({ user: 'ada', lastSeenAt })
    expect(await store.logout(token)).toBe(true)
    expect(await server.redis.exists(keys.data(idOf(token)))).toBe(0)
    const late = [store.patch(token, { cart }), store.data(token)]
    await Promise.all(late.map((call) => expect(call).rejects.toMatchObject(gone)))
    expect(await server.redis.exists(keys.data(idOf(token)), keys.viewed(idOf(token)))).toBe(0)
  })
})

test('parallel patches of different fields lose nothing; of the same field with ifVersion, one wins', async () => {
  const store = await storeForThisTest()
  const other = await storeForThisTest()
  const { token } = await store.login('ada')
  const names = Array.from({ length: 50 }, (_, index) => `field ${index}`)
  await Promise.all(
    names.map((name, index) => (index % 2 ? store : other).patch(token, { [name]: index })),
  )
  const { fields, version } = await store.data(token)
  expect(fields).toEqual(Object.fromEntries(names.map((name, index) => [name, index])))
  expect(version).toBe(50)
  const outcomes = await Promise.allSettled(
    names.map((name) => store.patch(token, { winner: name }, { ifVersion: version })),
  )
  const won = outcomes.flatMap(({ status }, index) => (status === 'fulfilled' ? names[index] : []))
  expect(won).toHaveLength(1)
  expect(await store.data(token)).toMatchObject({ fields: { winner: won[0] }, version: 51 })
  await expect(store.patch(token, {}, { ifVersion: 50 })).rejects.toMatchObject({
    code: 'ONETRIP_CONFLICT',
    mayHaveWritten: false,
    retrySafe: false,
    message: expect.stringContaining('version 50'),
  })
})

test('a patch refreshes the session, and an idle session is rejected at once', async () => {
  const store = await storeForThisTest({ idleSeconds: 100 })
  const { token } = await store.login('ada')
  clock.pass(99)
  await store.patch(token, { cart: [] })
  clock.pass(99)
  expect(await store.data(token)).toMatchObject({ version: 1 })
  clock.pass(2)
  await expect(store.patch(token, { cart: [1] })).rejects.toMatchObject(gone)
  await expect(store.data(token)).rejects.toMatchObject(gone)
  await expect(store.checkToken(token, { data: true })).rejects.toMatchObject(gone)
})

test('a session never exceeds the limit of fields; existing fields can be changed and removed', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const others = Object.fromEntries(Array.from({ length: 61 }, (_, at) => [`field ${at}`, at]))
  await store.patch(token, { ...others, a: 1, b: 2 })
  await expect(store.patch(token, { a: 3, c: 4, d: 5 })).rejects.toMatchObject({
    code: 'ONETRIP_INVALID_INPUT',
    message: expect.stringContaining('more than 64 fields'),
  })
  expect(await store.data(token)).toEqual({ fields: { ...others, a: 1, b: 2 }, version: 1 })
  await store.patch(token, { b: undefined, c: 4, d: 5 })
  await store.patch(token, { a: 6 })
  const names = ['e', 'f', 'g', 'h', 'i']
  const outcomes = await Promise.allSettled(names.map((name) => store.patch(token, { [name]: 1 })))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
  expect(await store.data(token)).toEqual({ fields: { ...others, a: 6, c: 4, d: 5 }, version: 3 })
  // Written by a process of an earlier version, with a higher limit.
  await server.redis.hset(articleKeys.data(idOf(token)), 'e', '8', 'f', '9')
  await store.patch(token, { a: 7 })
  await store.patch(token, { d: undefined })
  expect((await store.data(token)).fields).toEqual({ ...others, a: 7, c: 4, e: 8, f: 9 })
})
