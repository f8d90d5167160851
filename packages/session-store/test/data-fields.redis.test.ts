import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { articleKeys, createSessionStore, type SessionStoreOptions } from '../src/index.ts'
import { Clock, idOf, retentionServer } from './retention-fixture.ts'

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
  const { external } = await storeForThisTest()
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

test.each([{ fields: 0 }, { fields: 1_001 }, { fieldBytes: 1 }, { patchBytes: 1e9 }])(
  'dataLimits %j are refused',
  (dataLimits) => {
    const tokens = { secrets: ['x'.repeat(32)] }
    const build = () => createSessionStore({ url: `unix://${server.socket}`, tokens, dataLimits })
    expect(build).toThrow(TypeError)
  },
)
