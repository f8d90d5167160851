import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { sessionData } from '../src/data/session-data.ts'
import {
  createSessionStore,
  documentKeys,
  type Keys,
  type SessionStoreOptions,
  strategyNames,
} from '../src/index.ts'
import { isRead } from '../src/outcomes.ts'
import { Clock, idOf, layouts, retentionServer } from './retention-fixture.ts'

const server = retentionServer()
const clock = new Clock()

const storeForThisTest = (options: Partial<SessionStoreOptions> = {}) =>
  server.storeForThisTest(clock, options)

const commandsProcessed = async () =>
  Number(/total_commands_processed:(\d+)/.exec(await server.redis.info('stats'))?.[1])

describe.each(layouts)('%s', (_, keys) => {
  test.each(strategyNames)(
    '%s: data comes with a check or a view, field by field',
    async (strategy) => {
      const store = await storeForThisTest({ strategy, keys })
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
      for (const late of [store.patch(token, { cart }), store.data(token)]) {
        await expect(late).rejects.toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
      }
      expect(await server.redis.exists(keys.data(idOf(token)), keys.viewed(idOf(token)))).toBe(0)
    },
  )

  test('every way to end a session removes its data', async () => {
    const store = await storeForThisTest({ keys, maxSessionsPerUser: 2 })
    const begin = async (user = 'eve') => {
      clock.pass(1)
      const { token } = await store.login(user)
      await store.patch(token, { cart: ['book'] })
      return token
    }
    const left = async () => (await server.redis.keys('data:*')).length
    await server.redis.flushall()
    const tokens = [await begin(), await begin(), await begin()]
    expect(await left()).toBe(2) // the maximum ended the first
    const { sessions } = await store.userSessions(tokens[2] ?? '')
    const other = sessions.find(({ current }) => !current)
    await store.revokeSession(tokens[2] ?? '', other?.id ?? '')
    expect(await left()).toBe(1)
    await begin()
    await store.logoutEverywhere(tokens[2] ?? '')
    expect(await left()).toBe(0)
    await begin()
    await store.endUserSessions('eve')
    expect(await left()).toBe(0)
    await begin()
    clock.pass(100)
    expect(await store.janitor({ idleSeconds: 50 }).runOnce()).toMatchObject({ evicted: 1 })
    expect(await left()).toBe(0)
  })
})

test('parallel patches of different fields lose nothing; of one field with ifVersion one wins', async () => {
  const store = await storeForThisTest()
  const other = await storeForThisTest({ strategy: 'pipeline' })
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

test('a read of data whose reply is lost is known to have written nothing', () => {
  expect(isRead(['HGETALL', documentKeys.data('an-id')])).toBe(true)
})

test('a patch counts as seen, and an idle session is refused at once', async () => {
  const store = await storeForThisTest({ idleSeconds: 100 })
  const { token } = await store.login('ada')
  clock.pass(99)
  await store.patch(token, { cart: [] })
  clock.pass(99)
  expect(await store.data(token)).toMatchObject({ version: 1 })
  clock.pass(2)
  const code = 'ONETRIP_UNKNOWN_SESSION'
  await expect(store.patch(token, { cart: [1] })).rejects.toMatchObject({ code })
  await expect(store.data(token)).rejects.toMatchObject({ code })
  await expect(store.checkToken(token, { data: true })).rejects.toMatchObject({ code })
})

test('a field that is not JSON is named, and everything else works', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  await store.patch(token, { theme: 'dark' })
  const key = documentKeys.data(idOf(token))
  await server.redis.hset(key, { cart: "O:8:'a secret'", 'a\nb': '' })
  const other = await store.login('eve')
  const [view, othersView] = await Promise.allSettled([
    store.recordView(token, 'book', { data: true }),
    store.recordView(other.token, 'book', { data: true }),
  ])
  const unreadable = { code: 'ONETRIP_UNREADABLE_DATA', statusCode: 500, retrySafe: false }
  expect(view).toMatchObject({ reason: { ...unreadable, mayHaveWritten: true } })
  expect(othersView).toMatchObject({ value: { user: 'eve', data: { fields: {} } } })
  for (const read of [store.data(token), store.checkToken(token, { data: true })]) {
    const error = await read.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ ...unreadable, mayHaveWritten: false })
    expect(String(error)).toContain('data field "cart", "a\\nb"; remove')
    expect(inspect(error)).not.toContain('secret')
  }
  expect(await store.recordView(token, 'book')).toMatchObject({ user: 'ada' })
  expect((await store.exportUser('ada')).sessions).toMatchObject([
    { data: { theme: 'dark' }, unreadable: { cart: "O:8:'a secret'", 'a\nb': '' } },
  ])
  await server.redis.hdel(key, 'a\nb')
  await store.patch(token, { cart: undefined })
  expect(await store.data(token)).toMatchObject({ fields: { theme: 'dark' } })
  expect((await store.exportUser('ada')).sessions[0]).not.toHaveProperty('unreadable')
})

test('a walk leaves out fields that are not JSON', async () => {
  const { external } = await storeForThisTest()
  await external.put('an-id', { theme: 'dark' })
  await server.redis.hset(documentKeys.data('ext:an-id'), 'cart', 'not JSON')
  const found = await Array.fromAsync(external.walk())
  expect(found).toMatchObject([{ id: 'an-id', data: { fields: { theme: 'dark' } } }])
  await expect(external.read('an-id')).rejects.toMatchObject({ code: 'ONETRIP_UNREADABLE_DATA' })
})

const cyclic: Record<string, unknown> = {}
cyclic.self = cyclic
let deep: unknown = []
for (let depth = 0; depth < 100_000; depth++) deep = [deep]

class Cart {
  readonly #items = ['book']
  get size() {
    return this.#items.length
  }
}

test('a value with toJSON, without a prototype or of another realm is stored', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const at = new Date(0)
  const url = new URL('https://shop.example/')
  const grouped = Object.groupBy([1, 2], (number) => `${number}`)
  await store.patch(token, { at, url, grouped, foreign: runInNewContext('({ list: [{}] })') })
  expect((await store.data(token)).fields).toEqual({
    at: at.toJSON(),
    url: url.href,
    grouped: { 1: [1], 2: [2] },
    foreign: { list: [{}] },
  })
})

test.each<[string, Record<string, unknown>]>([
  ['data field "cart" cannot be written as JSON', { cart: cyclic }],
  ['data field "cart" cannot be written as JSON', { cart: deep }],
  ['data field "cart" cannot be written as JSON', { cart: [1n] }],
  ['data field "cart" cannot be written as JSON', { cart: { f() {} } }],
  ['data field "cart" cannot be written as JSON', { cart: [undefined] }],
  ['data field "cart" cannot be written as JSON', { cart: Symbol('secret') }],
  ['data field "cart" cannot be written as JSON', { cart: { price: Number.NaN } }],
  ['data field "cart" cannot be written as JSON', { cart: Number.POSITIVE_INFINITY }],
  ['data field "cart" cannot be written as JSON', { cart: { toJSON: () => undefined } }],
  ['data field "cart" cannot be written as JSON: JSON has no Map;', { cart: new Map([[1, 2]]) }],
  ['data field "cart" cannot be written as JSON: JSON has no Set;', { cart: [new Set([1])] }],
  ['data field "cart" cannot be written as JSON: JSON has no RegExp;', { cart: { a: /x/ } }],
  [
    'data field "cart" cannot be written as JSON: JSON has no Uint8Array;',
    { cart: new Uint8Array(2) },
  ],
  ['data field "cart" cannot be written as JSON: JSON has no Cart;', { cart: new Cart() }],
  ['data field "cart" has 101 bytes as JSON; at most 100', { cart: 'x'.repeat(99) }],
  ['data field "cart" has 102 bytes as JSON; at most 100', { cart: 'ü'.repeat(50) }],
  ['data has 204 bytes as JSON; at most 200', { a: 'x'.repeat(97), b: 'x'.repeat(97), c: 'x' }],
  ['data has 4 fields; at most 3', { a: 1, b: 2, c: undefined, d: 4 }],
  ['the name of a data field must', { '': 1 }],
  ['the name of a data field must', { 'a\nb': 1 }],
  ['the name of a data field must', { ['x'.repeat(129)]: undefined }],
  ['data must be an object', null as never],
  ['data must be an object', 'cart' as never],
  ['data must be an object, not an array', ['cart'] as never],
])('refused before anything is sent: %s', async (message, fields) => {
  const store = await storeForThisTest({
    dataLimits: { fields: 3, fieldBytes: 100, patchBytes: 200 },
  })
  const { token } = await store.login('ada')
  const before = await commandsProcessed()
  const error = await store.patch(token, fields).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'ONETRIP_INVALID_INPUT', mayHaveWritten: false })
  expect(String(error)).toContain(message)
  expect(await commandsProcessed()).toBe(before + 1) // the INFO before
})

test.each([-1, 1.5, Number.NaN, '1', null, Number.POSITIVE_INFINITY])(
  'ifVersion %s is refused',
  async (ifVersion) => {
    const store = await storeForThisTest()
    const { token } = await store.login('ada')
    await expect(store.patch(token, {}, { ifVersion: ifVersion as number })).rejects.toMatchObject({
      code: 'ONETRIP_INVALID_INPUT',
      message: expect.stringContaining('ifVersion'),
    })
  },
)

test('a session never has more fields than the limit; what it has can be changed and removed', async () => {
  const store = await storeForThisTest({ dataLimits: { fields: 3 } })
  const { token } = await store.login('ada')
  await store.patch(token, { a: 1, b: 2 })
  await expect(store.patch(token, { a: 3, c: 4, d: 5 })).rejects.toMatchObject({
    code: 'ONETRIP_INVALID_INPUT',
    message: expect.stringContaining('more than 3 fields'),
  })
  expect(await store.data(token)).toEqual({ fields: { a: 1, b: 2 }, version: 1 })
  await store.patch(token, { b: undefined, c: 4, d: 5 })
  await store.patch(token, { a: 6 })
  const names = ['e', 'f', 'g', 'h', 'i']
  const outcomes = await Promise.allSettled(names.map((name) => store.patch(token, { [name]: 1 })))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
  expect(await store.data(token)).toEqual({ fields: { a: 6, c: 4, d: 5 }, version: 3 })
  // Another process has a lower limit: what is there may still shrink and change.
  const stricter = await storeForThisTest({ dataLimits: { fields: 1 } })
  await stricter.patch(token, { a: 7 })
  await stricter.patch(token, { d: undefined })
  expect(await stricter.data(token)).toMatchObject({ fields: { a: 7, c: 4 } })
})

test.each([{ fields: 0 }, { fields: 1_001 }, { fieldBytes: 1 }, { patchBytes: 1e9 }])(
  'dataLimits %j are refused',
  (dataLimits) => {
    const tokens = { secrets: ['x'.repeat(32)] }
    const build = () => createSessionStore({ url: `unix://${server.socket}`, tokens, dataLimits })
    expect(build).toThrow(TypeError)
  },
)

describe('by session id, for session stores of frameworks', () => {
  const dataOf = (keys: Keys = documentKeys) => {
    const limits = { fields: 10, fieldBytes: 1_000, patchBytes: 1_000 }
    return sessionData({
      runner: server,
      keys,
      now: () => clock.ms,
      idleSeconds: 100,
      limits,
    })
  }

  test.each(layouts)(
    '%s: whole writes replace all fields, and only `create` creates',
    async (_, keys) => {
      const data = dataOf(keys)
      expect(await data.write('an-id', 'replace', { a: 1 })).toBeUndefined()
      expect(await data.read('an-id')).toBeUndefined()
      expect(await data.write('an-id', 'create', { a: 1, b: 2 })).toEqual({ version: 1 })
      expect(await data.write('an-id', 'replace', { b: 3, c: undefined })).toEqual({ version: 2 })
      expect(await data.read('an-id')).toEqual({ fields: { b: 3 }, version: 2 })
      expect(await data.write('an-id', 'create', {}, 2)).toEqual({ version: 3 })
      await expect(data.write('an-id', 'replace', { a: 1 }, 2)).rejects.toMatchObject({
        code: 'ONETRIP_CONFLICT',
      })
      expect(await data.end('an-id')).toBe(true)
    },
  )

  test('a whole write after the end does not bring the session back, until the tombstone expires', async () => {
    const data = dataOf()
    await data.write('late', 'create', { a: 1 })
    expect(await data.end('late')).toBe(true)
    for (const mode of ['create', 'replace', 'patch'] as const) {
      expect(await data.write('late', mode, { a: 2 })).toBeUndefined()
    }
    expect(await data.end('late')).toBe(false)
    const key = documentKeys.ended('late')
    expect(await server.redis.ttl(key)).toBeGreaterThan(290)
    await server.redis.del(key)
    expect(await data.write('late', 'create', { a: 2 })).toEqual({ version: 1 })
  })

  test('an idle session is created anew, without the data and the user that it had', async () => {
    const data = dataOf()
    const store = await storeForThisTest()
    const { token } = await store.login('ada')
    await store.patch(token, { cart: ['secret'] })
    clock.pass(101)
    expect(await data.write(idOf(token), 'create', { a: 1 })).toEqual({ version: 2 })
    const data1 = { fields: { a: 1 }, version: 2 }
    expect(await store.checkToken(token, { data: true })).toMatchObject({ user: null, data: data1 })
  })
})
