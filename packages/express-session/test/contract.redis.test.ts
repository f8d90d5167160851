import type { SessionStore } from '@onetrip/session-store'
import { describe, expect, test } from 'vitest'
import { ExpressSessionStore, type StoreOptions } from '../src/express.ts'
import { FastifySessionStore } from '../src/fastify.ts'
import { ended, sessionServer } from './fixture.ts'

const server = sessionServer()

/** The functions of a store for express-session, with promises. */
interface Adapter {
  get(id: string): Promise<unknown>
  set(id: string, session: object): Promise<unknown>
  touch(id: string, session: object): Promise<unknown>
  destroy(id: string): Promise<unknown>
  all(): Promise<{ id: string }[] | undefined>
  length(): Promise<number | undefined>
  ids(): Promise<string[] | undefined>
  clear(): Promise<unknown>
}

const forExpress = (store: SessionStore, options?: StoreOptions) =>
  new ExpressSessionStore(store, options) as unknown as Adapter

/** It has only get, set and destroy. */
function forFastify(store: SessionStore, options?: StoreOptions): Adapter {
  const { get, set, destroy } = FastifySessionStore.prototype
  const fastify = new FastifySessionStore(store, options)
  const own = { get: get.bind(fastify), set: set.bind(fastify), destroy: destroy.bind(fastify) }
  return Object.assign(forExpress(store, options), own)
}

const userOf = () => 'grace'

const adapters: [string, (store: SessionStore) => Adapter][] = [
  ['express-session', (store) => forExpress(store)],
  ['express-session, with userOf', (store) => forExpress(store, { userOf })],
  ['@fastify/session', (store) => forFastify(store)],
  ['@fastify/session, with userOf', (store) => forFastify(store, { userOf })],
]

const DAY = 86_400
const inSeconds = (seconds: number) => new Date(Date.now() + 1000 * seconds)

describe.each(adapters)('%s', (_, adapt) => {
  test('passes what the public tests of connect-redis require of a store', async () => {
    const adapter = adapt(await server.start())
    expect(await adapter.get('123')).toBe(null)
    await adapter.clear()
    const plain = { foo: 'bar', cookie: { originalMaxAge: null } }
    await adapter.set('123', plain)
    expect(await adapter.get('123')).toEqual(plain)

    await adapter.set('456', { cookie: { originalMaxAge: null, expires: inSeconds(60) } })
    const later = inSeconds(90)
    await adapter.touch('456', { cookie: { originalMaxAge: null, expires: later } })
    const touched = { cookie: { originalMaxAge: null, expires: later.toISOString() } }
    expect(await adapter.get('456')).toEqual(touched)

    expect(await adapter.length()).toBe(2)
    expect((await adapter.ids())?.sort()).toEqual(['123', '456'])
    expect((await adapter.all())?.sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      { id: '123', ...plain },
      { id: '456', ...touched },
    ])
    await adapter.destroy('456')
    expect(await adapter.length()).toBe(1)
    await adapter.clear()
    expect(await adapter.length()).toBe(0)

    await adapter.set('789', { cookie: { originalMaxAge: null, expires: inSeconds(90) } })
    expect(await adapter.length()).toBe(1)
    await adapter.set('789', { cookie: { originalMaxAge: null, expires: inSeconds(-90) } })
    expect(await adapter.length()).toBe(0)
    const left = Object.entries(await server.dump())
    expect(left.filter(([key]) => !key.startsWith('express:user:'))).toEqual(
      ['123', '456', '789'].map((id) => [`express:${id}`, ended]),
    )
  })

  test('a late set or touch does not bring a destroyed session back', async () => {
    const adapter = adapt(await server.start())
    const saved = { cookie: {}, cart: ['book'] }
    await adapter.set('one', saved)
    await adapter.destroy('one')
    await adapter.set('one', saved)
    await adapter.touch('one', saved)
    expect(await adapter.get('one')).toBe(null)
    expect(await adapter.length()).toBe(0)
    expect(await server.dump()).toEqual({ 'express:one': ended })
    expect(await server.redis.ttl('express:one')).toBeGreaterThan(290)
  })

  test('a session lives as long as its cookie, or else a day after its last use', async () => {
    const adapter = adapt(await server.start())
    const left = async (id: string) => await server.redis.ttl(`express:${id}`)
    await adapter.set('remembered', { cookie: { expires: inSeconds(30 * DAY) } })
    await adapter.set('browser', { cookie: {} })
    expect(await left('remembered')).toBeGreaterThan(30 * DAY - 60)
    expect(await left('browser')).toBeGreaterThan(DAY - 60)
    expect(await left('browser')).toBeLessThanOrEqual(DAY)
    await server.redis.expire('express:browser', 100)
    await adapter.touch('browser', { cookie: {} })
    expect(await left('browser')).toBeGreaterThan(DAY - 60)
    await adapter.set('short', { cookie: { expires: new Date(Date.now() + 30) } })
    await expect.poll(() => adapter.get('short')).toBe(null)
    expect((await adapter.ids())?.sort()).toEqual(['browser', 'remembered'])
  })

  test('sessions of tokens are separate, and clear keeps them', async () => {
    const store = await server.start()
    const adapter = adapt(store)
    const { token } = await store.login('ada')
    await store.patch(token, { secret: 1 })
    const [id = ''] = token.split('.')
    expect(await adapter.get(id)).toBe(null)
    await adapter.destroy(id)
    await adapter.set('one', { cookie: {} })
    expect(await adapter.ids()).toEqual(['one'])
    await adapter.clear()
    expect(await store.checkToken(token, { data: true })).toMatchObject({
      user: 'ada',
      data: { fields: { secret: 1 } },
    })
  })

  test('stores the same JSON values as connect-redis', async () => {
    const adapter = adapt(await server.start())
    const odd = { cookie: {}, none: undefined, list: [undefined, Number.NaN], at: new Date(0) }
    await adapter.set('one', odd)
    expect(await adapter.get('one')).toEqual(JSON.parse(JSON.stringify(odd)))
  })

  test('fields have any names but the empty one', async () => {
    const adapter = adapt(await server.start())
    const text = '{"cookie":{},"__proto__":{"admin":true},"a b\\n":1,"constructor":2,"ü":null}'
    await adapter.set('one', JSON.parse(text))
    expect(JSON.stringify(await adapter.get('one'))).toBe(text)
    await expect(adapter.set('one', { cookie: {}, '': 1 })).rejects.toMatchObject({
      code: 'ONETRIP_INVALID_INPUT',
    })
    expect(JSON.stringify(await adapter.get('one'))).toBe(text)
  })

  test('a field that is not JSON is an error, and nothing is lost', async () => {
    const adapter = adapt(await server.start())
    await adapter.set('one', { cookie: {}, cart: ['book'] })
    await server.redis.hset('express:one', 'theme', 'dark')
    const before = await server.dump()
    await expect(adapter.get('one')).rejects.toMatchObject({
      code: 'ONETRIP_UNREADABLE_DATA',
      message: 'the field "theme" of a session is not JSON',
    })
    expect(await server.dump()).toEqual(before)
    await adapter.destroy('one')
    expect(await adapter.get('one')).toBe(null)
  })

  test('a session beyond the limits is refused, and the one in Redis stays', async () => {
    const adapter = adapt(await server.start())
    await adapter.set('one', { cookie: {}, cart: ['book'] })
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [index, index]))
    const large = 'x'.repeat(8 * 1024 ** 2 - 2)
    for (const session of [
      { cookie: {}, ...many },
      { cookie: {}, large: `${large}x` },
      { cookie: {}, a: large, b: large, c: large, d: large },
    ]) {
      await expect(adapter.set('one', session)).rejects.toMatchObject({
        code: 'ONETRIP_INVALID_INPUT',
      })
    }
    expect(await adapter.get('one')).toEqual({ cookie: {}, cart: ['book'] })
    await adapter.set('two', { cookie: {}, large })
    expect(await adapter.get('two')).toEqual({ cookie: {}, large })
  })

  test.each(['', 'x'.repeat(1_025), 'user:ada', 42 as never])(
    'refuses the id %.10s',
    async (id) => {
      const adapter = adapt(await server.start())
      const code = 'ONETRIP_INVALID_INPUT'
      await expect(adapter.get(id)).rejects.toMatchObject({ code })
      await expect(adapter.set(id, { cookie: {} })).rejects.toMatchObject({ code })
      await expect(adapter.destroy(id)).rejects.toMatchObject({ code })
      expect(await server.dump()).toEqual({})
    },
  )

  test('refuses anything but a session store', () => {
    expect(() => adapt({} as SessionStore)).toThrow('must be a session store')
  })
})

test.each([
  [{ disableTouch: true }, 'no option disableTouch: its options are prefix, ttl'],
  [{ prefix: '' }, 'prefix must be a text'],
  [{ ttl: 0.5 }, 'ttl must be a whole number'],
  [{ userOf: 'user' }, 'userOf must be a function'],
  [{ maxSessionsPerUser: 0 }, 'maxSessionsPerUser must be'],
  [{ migrateFrom: {} }, 'migrateFrom must be a prefix'],
  [{ migrateFrom: 'express:' }, 'migrateFrom and prefix must differ'],
])('refuses the options %o', async (options, message) => {
  const store = await server.start()
  expect(() => new ExpressSessionStore(store, options as never)).toThrow(message)
})

test('an option that is undefined has its default', async () => {
  const options = { ttl: undefined, prefix: undefined, maxSessionsPerUser: undefined } as never
  const adapter = new ExpressSessionStore(await server.start(), options)
  await adapter.set('one', { cookie: {} } as never)
  expect(await server.redis.ttl('express:one')).toBeGreaterThan(DAY - 60)
})

test('a prefix of its own, also with a hash tag', async () => {
  const store = await server.start()
  for (const [prefix, key] of [
    ['a*[b]:', 'a*[b]:one'],
    ['app:{sess:', 'app:{sess:one}'],
  ] as const) {
    const adapter = new ExpressSessionStore(store, { prefix, userOf })
    await adapter.set('one', { cookie: {} } as never)
    expect(Object.keys(await server.dump())).toContain(key)
    expect(await adapter.ids()).toEqual(['one'])
    expect(await adapter.ofUser('grace')).toHaveLength(1)
    await adapter.clear()
    expect(await adapter.length()).toBe(0)
  }
  expect(await new ExpressSessionStore(store).ids()).toEqual([])
})
