import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { articleKeys, type SessionStoreOptions } from '../src/index.ts'
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
  const reads = [store.data(token), store.checkToken(token, { data: true })]
  for (const { reason: error } of (await Promise.allSettled(reads)) as PromiseRejectedResult[]) {
    expect(error).toMatchObject({ ...unreadable, mayHaveWritten: false })
    expect(String(error)).toContain('data field "cart", "a\\nb"; use patch')
    expect(inspect(error)).not.toContain('secret')
  }
  expect(await store.recordView(token, 'book')).toMatchObject({ user: 'ada' })
  await server.redis.hdel(key, 'a\nb')
  await store.patch(token, { cart: undefined })
  expect(await store.data(token)).toMatchObject({ fields: { theme: 'dark' } })
})

/** Fields with names of one character. */
const fieldsOf = (count: number, value: unknown) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [String.fromCharCode(48 + at), value]),
  )

const cyclic: Record<string, unknown> = {}
cyclic.self = cyclic

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
  ['"cart" cannot be written as JSON', { cart: cyclic }],
  ['"cart" cannot be written as JSON', { cart: [1n] }],
  ['"cart" cannot be written as JSON', { cart: { f() {} } }],
  ['"cart" cannot be written as JSON', { cart: Symbol('secret') }],
  ['"cart" cannot be written as JSON', { cart: Number.POSITIVE_INFINITY }],
  ['"cart" cannot be written as JSON: JSON has no Map;', { cart: new Map([[1, 2]]) }],
  ['"cart" cannot be written as JSON: JSON has no Cart;', { cart: new Cart() }],
  ['"cart" cannot be written as JSON: JSON has no invalid Date', { cart: [new Date('x')] }],
  ['data field "cart" has 16385 bytes as JSON; at most 16384', { cart: 'x'.repeat(16_383) }],
  ['data field "cart" has 16386 bytes as JSON; at most 16384', { cart: 'ü'.repeat(8_192) }],
  ['data has 65540 bytes as JSON; at most 65536', fieldsOf(4, 'x'.repeat(16_382))],
  ['data has 65 fields; at most 64', { ...fieldsOf(64, 1), more: undefined }],
  ['the name of a data field must', { '': 1 }],
  ['the name of a data field must', { 'a\nb': 1 }],
  ['data must be an object, not an array', ['cart'] as never],
  ['data must be a plain object, not a Map', new Map([['cart', 1]]) as never],
])('refused before anything is sent: %s', async (message, fields) => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const before = await commandsProcessed()
  const error = await store.patch(token, fields).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'ONETRIP_INVALID_INPUT', mayHaveWritten: false })
  expect(String(error)).toContain(message)
  expect(await commandsProcessed()).toBe(before + 1) // the INFO before
})

test('a login takes over a guest session with the maximum of fields', async () => {
  const store = await storeForThisTest()
  const guest = await store.loginGuest()
  const fields = fieldsOf(64, 1)
  await store.patch(guest.token, fields)
  const { token } = await store.login('ada', { from: guest.token })
  expect(await store.data(token)).toEqual({ fields, version: 1 })
})
