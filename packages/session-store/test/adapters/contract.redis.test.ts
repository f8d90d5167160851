import { describe, expect, test } from 'vitest'
import { type AdapterOptions, expressSessionStore } from '../../src/adapters/express-session.ts'
import { fastifySessionStore } from '../../src/adapters/fastify-session.ts'
import { partitionedKeys } from '../../src/cluster/index.ts'
import type { SessionStore, StoreWarning } from '../../src/core/index.ts'
import { warningsOfThisTest } from '../fixture.ts'
import { Clock, evictOnly, retentionServer, sweep } from '../retention-fixture.ts'

const server = retentionServer()

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

const forExpress = (store: SessionStore, options?: AdapterOptions) =>
  expressSessionStore(store, options) as unknown as Adapter

const userOf = () => 'grace'

const adapters: [string, (store: SessionStore) => Adapter][] = [
  ['express-session', (store) => forExpress(store)],
  ['express-session, with userOf', (store) => forExpress(store, { userOf })],
  // It has only get, set and destroy.
  ['@fastify/session', (store) => Object.assign(forExpress(store), fastifySessionStore(store))],
  [
    '@fastify/session, with userOf',
    (store) => Object.assign(forExpress(store), fastifySessionStore(store, { userOf })),
  ],
]

const IDLE_SECONDS = 100
const options = { idleSeconds: IDLE_SECONDS, keys: partitionedKeys(4) }
const inSeconds = (seconds: number) => new Date(Date.now() + 1000 * seconds)

describe.each(adapters)('%s', (_, adapt) => {
  test('passes what the public tests of connect-redis require of a store', async () => {
    const adapter = adapt((await server.start(options)).store)
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
    const left = async () => Object.keys(await server.dump())
    await expect
      .poll(async () => (await left()).filter((key) => !key.startsWith('ended:')))
      .toEqual([])
  })

  test('a late set or touch does not bring a destroyed session back', async () => {
    const adapter = adapt((await server.start(options)).store)
    const saved = { cookie: {}, cart: ['book'] }
    await adapter.set('one', saved)
    await adapter.destroy('one')
    await adapter.set('one', saved)
    await adapter.touch('one', saved)
    expect(await adapter.get('one')).toBe(null)
    expect(await adapter.length()).toBe(0)
    const ended = Object.keys(await server.dump())
    expect(ended).toEqual([expect.stringContaining('ended:')])
    expect(await server.redis.ttl(ended[0] ?? '')).toBeGreaterThan(290)
  })

  test('a session ends with its cookie or when it is idle; use restarts the idle timeout', async () => {
    const clock = new Clock()
    const adapter = adapt(await server.storeForThisTest(clock, options))
    const cookie = {}
    await adapter.set('browser', { cookie })
    await adapter.set('used', { cookie })
    clock.pass(IDLE_SECONDS - 1)
    await adapter.touch('used', { cookie })
    clock.pass(2)
    expect(await adapter.get('browser')).toBe(null)
    expect(await adapter.ids()).toEqual(['used'])
    await adapter.set('short', { cookie: { expires: new Date(Date.now() + 30) } })
    await expect.poll(() => adapter.get('short')).toBe(null)
    expect(await adapter.length()).toBe(1)
  })

  test('warns once about a cookie that outlives the idle timeout', async () => {
    const warnings: StoreWarning[] = warningsOfThisTest()
    const adapter = adapt((await server.start(options)).store)
    await adapter.set('within', { cookie: { expires: inSeconds(IDLE_SECONDS) } })
    expect(warnings).toEqual([])
    await adapter.set('long', { cookie: { expires: inSeconds(IDLE_SECONDS + 60) } })
    await adapter.set('longer', { cookie: { expires: inSeconds(IDLE_SECONDS + 60) } })
    expect(warnings).toEqual([
      {
        code: 'ONETRIP_COOKIE_OUTLIVES_SESSION',
        message: expect.stringContaining('idleSeconds (100)'),
      },
    ])
  })

  test('the janitor ends idle sessions, and its sweep removes only leftovers', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, options)
    const adapter = adapt(store)
    // Ids of express-session: they look like ids of tokens, but the first bytes are not a time.
    const early = 'AAAAAAAAabcdefghijklmnopqrstuvwx'
    const late = '________abcdefghijklmnopqrstuvwx'
    for (const id of [early, late, 'another shape']) await adapter.set(id, { cookie: {} })
    expect(await sweep(store)).toMatchObject({ swept: 0 })
    clock.pass(90)
    expect(await sweep(store)).toMatchObject({ swept: 0 })
    expect(await adapter.length()).toBe(3)

    // The leftover of an interrupted end: data without a session.
    const { keys } = options
    await server.redis.hdel(keys.login(`ext:${late}`), `ext:${late}`)
    await server.redis.zrem(keys.recent(`ext:${late}`), `ext:${late}`)
    expect((await sweep(store)).swept).toBeGreaterThan(0)
    expect((await adapter.ids())?.sort()).toEqual([early, 'another shape'].sort())

    clock.pass(20)
    expect((await store.janitor(evictOnly).runOnce()).evicted).toBe(2)
    expect(Object.keys(await server.dump())).toEqual(['janitor:tasks'])
  })

  test('sessions of tokens are separate, and clear keeps them', async () => {
    const store = (await server.start(options)).store
    const adapter = adapt(store)
    const { token } = await store.login('ada')
    await store.patch(token, { secret: 1 })
    const [id = ''] = token.split('.')
    expect(await adapter.get(id)).toBe(null)
    await adapter.destroy(id)
    await adapter.set('one', { cookie: {} })
    expect(await adapter.ids()).toEqual(['one'])
    expect((await store.userSessions(token)).sessions).toHaveLength(1)
    await adapter.clear()
    expect(await store.checkToken(token, { data: true })).toMatchObject({
      user: 'ada',
      data: { fields: { secret: 1 } },
    })
  })

  test('stores the same JSON values as connect-redis', async () => {
    const adapter = adapt((await server.start(options)).store)
    const odd = { cookie: {}, none: undefined, list: [undefined, Number.NaN], at: new Date(0) }
    await adapter.set('one', odd)
    expect(await adapter.get('one')).toEqual(JSON.parse(JSON.stringify(odd)))
  })

  test('a session that is created between the commands of a read is not without data', async () => {
    const { keys } = options
    const adapter = adapt((await server.start(options)).store)
    await adapter.set('one', { cookie: {} })
    await server.redis.del(keys.data('ext:one'))
    expect(await adapter.get('one')).toBe(null)
  })

  test('refuses anything but a store of createSessionStore', () => {
    expect(() => adapt({} as SessionStore)).toThrow(/createSessionStore/)
  })
})
