import type { SessionStore } from '@onetrip/session-store'
import { describe, expect, test } from 'vitest'
import { ExpressSessionStore, type StoreOptions } from '../src/express.ts'
import { ended, sessionServer } from './fixture.ts'

// What the tests of connect-redis (`npm run test:upstream-sessions`) and the conformance suite do not ask of a store.

const server = sessionServer()

/** The functions of a store for express-session, with promises. */
interface Adapter {
  get(id: string): Promise<unknown>
  set(id: string, session: object): Promise<unknown>
  touch(id: string, session: object): Promise<unknown>
  destroy(id: string): Promise<unknown>
  length(): Promise<number | undefined>
  ids(): Promise<string[] | undefined>
  all(): Promise<object[] | undefined>
  clear(): Promise<unknown>
}

const userOf = () => 'grace'
const DAY = 86_400
const inSeconds = (seconds: number) => new Date(Date.now() + 1000 * seconds)
const invalid = { code: 'ONETRIP_INVALID_INPUT' }

describe.each<[string, StoreOptions]>([
  ['express-session', {}],
  ['express-session, with userOf', { userOf }],
])('%s', (_, options) => {
  const adapt = (store: SessionStore) =>
    new ExpressSessionStore(store, options) as unknown as Adapter

  test('a late set or touch does not bring a destroyed session back', async () => {
    const adapter = adapt(await server.start())
    const saved = { cookie: {}, cart: ['book'] }
    await adapter.set('one', saved)
    await adapter.destroy('one')
    await adapter.set('one', saved)
    await adapter.set('one', { ...saved }) // as of a request that created it
    await adapter.touch('one', { ...saved })
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
    await adapter.set('short', { cookie: { expires: inSeconds(0.03) } })
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
    expect(await adapter.all()).toEqual([{ id: 'one', cookie: {} }])
    await adapter.clear()
    const found = await store.checkToken(token, { data: true })
    expect(found).toMatchObject({ user: 'ada', data: { fields: { secret: 1 } } })
  })

  test('values are the same JSON as with connect-redis, of fields with any name but the empty one', async () => {
    const adapter = adapt(await server.start())
    const odd = { cookie: {}, none: undefined, list: [undefined, Number.NaN], at: new Date(0) }
    await adapter.set('odd', odd)
    expect(await adapter.get('odd')).toEqual(JSON.parse(JSON.stringify(odd)))
    const text = '{"cookie":{},"__proto__":{"admin":true},"a b\\n":1,"constructor":2,"ü":null}'
    await adapter.set('one', JSON.parse(text))
    await expect(adapter.set('one', { cookie: {}, '': 1 })).rejects.toMatchObject(invalid)
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
    const small = { cookie: {}, cart: ['book'] }
    await adapter.set('one', small)
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [index, index]))
    const large = 'x'.repeat(8 * 1024 ** 2 - 2)
    for (const fields of [many, { large: `${large}x` }, { a: large, b: large, c: large, d: large }])
      await expect(adapter.set('one', { cookie: {}, ...fields })).rejects.toMatchObject(invalid)
    expect(await adapter.get('one')).toEqual(small)
    await adapter.set('two', { cookie: {}, large })
    expect(await adapter.get('two')).toEqual({ cookie: {}, large })
  })

  test('refuses ids that are no text of 1 to 1,024 characters, or that name a list', async () => {
    const adapter = adapt(await server.start())
    for (const id of ['', 'x'.repeat(1_025), 'user:ada', 42 as never]) {
      for (const call of [adapter.get(id), adapter.set(id, { cookie: {} }), adapter.destroy(id)])
        await expect(call).rejects.toMatchObject(invalid)
    }
    expect(await server.dump()).toEqual({})
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
  expect(() => new ExpressSessionStore({} as never)).toThrow('must be a session store')
  expect(() => new ExpressSessionStore(store, { ttl: undefined } as never)).not.toThrow()
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
