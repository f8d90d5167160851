import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { externalSessions } from '../src/adapters/external-sessions.ts'
import { articleKeys, type SessionStoreOptions, strategyNames } from '../src/core/index.ts'
import { idOf } from './fixture.ts'
import { Clock, retentionServer } from './retention-fixture.ts'

const server = retentionServer()
const clock = new Clock()

const storeForThisTest = (options: Partial<SessionStoreOptions> = {}) =>
  server.storeForThisTest(clock, options)

const commandsProcessed = async () =>
  Number(/total_commands_processed:(\d+)/.exec(await server.redis.info('stats'))?.[1])

test('the error names a field that is not JSON, and everything else works', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  await store.patch(token, { theme: 'dark' })
  const key = articleKeys.data(idOf(token))
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

test('a walk skips fields that are not JSON', async () => {
  const external = externalSessions(await storeForThisTest())
  await external.put('an-id', { theme: 'dark' })
  await server.redis.hset(articleKeys.data('ext:an-id'), 'cart', 'not JSON')
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
  ['"cart" cannot be written as JSON: JSON has no invalid Date', { cart: [new Date('x')] }],
  ['"cart" cannot be written as JSON: JSON has no invalid Date', { cart: new Date(Number.NaN) }],
  ['data field "cart" has 101 bytes as JSON; at most 100', { cart: 'x'.repeat(99) }],
  ['data field "cart" has 102 bytes as JSON; at most 100', { cart: 'ü'.repeat(50) }],
  ['data has 204 bytes as JSON; at most 200', { a: 'x'.repeat(97), b: 'x'.repeat(97), c: 'x' }],
  ['data has 4 fields; at most 3', { a: 1, b: 2, c: undefined, d: 4 }],
  ['the name of a data field must', { '': 1 }],
  ['the name of a data field must', { 'a\nb': 1 }],
  ['the name of a data field must', { ['x'.repeat(129)]: undefined }],
  ['data must be an object, not an array', ['cart'] as never],
  ['data must be a plain object, not a Map', new Map([['cart', 1]]) as never],
  ['data must be a plain object, not a Date', new Date() as never],
  ['data must be a plain object, not a Cart', new Cart() as never],
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

test('external sessions have fields of any name', async () => {
  const external = externalSessions(await storeForThisTest())
  const unit = fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0xd800, 0xdc00, 0xfffd, 0xfeff, 34))
  const anyText = fc.array(unit, { maxLength: 200 }).map((units) => String.fromCharCode(...units))
  const anyName = fc.oneof(anyText, fc.constantFrom('', '\0', '\0""', '"', '__proto__', 'version'))
  const anyFields = fc.dictionary(anyName, anyText, { noNullPrototype: true })
  await fc.assert(
    fc.asyncProperty(anyFields, anyFields, fc.nat(), async (fields, changes, index) => {
      await external.end('one')
      await server.redis.flushall()
      await external.put('one', fields)
      expect(await external.read('one')).toEqual({ fields, version: 1 })
      const entries = [...Object.entries(fields), ...Object.entries(changes)]
      const [[removed] = ['']] = entries.splice(index % (entries.length || 1), 1)
      await external.patch('one', { ...changes, [removed]: undefined })
      const left = Object.fromEntries(entries.filter(([name]) => name !== removed))
      expect((await external.read('one'))?.fields).toEqual(left)
      const found = await Array.fromAsync(external.walk())
      expect(found).toMatchObject([{ id: 'one', data: { fields: left } }])
    }),
    { numRuns: 200 },
  )
})

test('a name that another program wrote is returned as it is', async () => {
  const external = externalSessions(await storeForThisTest())
  await external.put('one', {})
  await server.redis.hset(articleKeys.data('ext:one'), '\0x', '1')
  expect((await external.read('one'))?.fields).toEqual({ '\0x': 1 })
})

test.each(strategyNames)('%s: an external session has up to 10,000 fields', async (strategy) => {
  const external = externalSessions(await storeForThisTest({ strategy }))
  const names = Array.from({ length: 10_000 }, (_, index) => `field ${index}`)
  const fields = Object.fromEntries(names.map((name) => [name, name]))
  await external.put('one', fields)
  expect(await external.read('one')).toEqual({ fields, version: 1 })
  await expect(external.patch('one', { more: 1 })).rejects.toThrow('more than 10000 fields')
  const without = Object.fromEntries(names.map((name) => [name, undefined]))
  await external.patch('one', { ...without, 'field 7': 7 })
  expect(await external.read('one')).toEqual({ fields: { 'field 7': 7 }, version: 2 })
})

test('an external session has fields of up to 8 MiB, and a write up to 32 MiB', async () => {
  const external = externalSessions(await storeForThisTest())
  const large = 'x'.repeat(8 * 2 ** 20 - 2)
  const fields = { a: large, b: large, c: large, d: large.slice(100) }
  await external.put('one', fields)
  expect((await external.read('one'))?.fields).toEqual(fields)
  const tooLarge = { code: 'ONETRIP_INVALID_INPUT', message: expect.stringContaining('33554432') }
  await expect(external.put('one', { ...fields, e: large })).rejects.toMatchObject(tooLarge)
  await expect(external.patch('one', { a: `${large}x` })).rejects.toThrow('at most 8388608')
})

test('`dataLimits` hold for external sessions, too', async () => {
  const external = externalSessions(await storeForThisTest({ dataLimits: { fields: 2 } }))
  await expect(external.put('one', { a: 1, b: 2, c: 3 })).rejects.toThrow('at most 2 are allowed')
  await external.put('one', { a: 'x'.repeat(100_000) })
})

test('a login takes over a guest session with the maximum of fields', async () => {
  for (const strategy of strategyNames) {
    const dataLimits = { fields: 10_000, patchBytes: 1_000_000 }
    const store = await storeForThisTest({ strategy, dataLimits })
    const guest = await store.loginGuest()
    const names = Array.from({ length: 10_000 }, (_, index) => `field ${index}`)
    const fields = Object.fromEntries(names.map((name) => [name, 1]))
    await store.patch(guest.token, fields)
    const { token } = await store.login('ada', { from: guest.token })
    expect(await store.data(token)).toEqual({ fields, version: 1 })
  }
})

test('`swap` writes a field only if it still has its value, and all others in any case', async () => {
  const external = externalSessions(await storeForThisTest())
  await external.put('one', { cookie: { maxAge: 1 }, '': 1 })
  const swap = (from: unknown, to: unknown, field = 'cookie') => ({ field, from, to })
  expect(await external.patch('one', { a: 1 }, swap({ maxAge: 2 }, 3))).toBe(true)
  const cookie = { maxAge: 1 }
  expect(await external.read('one')).toEqual({ fields: { cookie, '': 1, a: 1 }, version: 2 })
  await external.patch('one', { a: undefined }, swap(cookie, { maxAge: 3 }))
  await external.patch('one', {}, swap(1, 2, ''))
  await external.patch('one', {}, swap(null, 1, 'missing'))
  const fields = { cookie: { maxAge: 3 }, '': 2 }
  expect(await external.read('one')).toEqual({ fields, version: 5 })
  await expect(external.patch('one', { a: 1 }, swap(cookie, 1n))).rejects.toThrow('"cookie"')
})
