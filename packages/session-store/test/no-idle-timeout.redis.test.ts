import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { expressSessionStore } from '../src/adapters/express-session.ts'
import { externalSessions } from '../src/adapters/external-sessions.ts'
import { importConnectRedis } from '../src/adapters/import-connect-redis.ts'
import { createSessionStore } from '../src/core/index.ts'
import { bridgeStores } from '../src/migration/index.ts'
import { idOf, warningsOfThisTest } from './fixture.ts'
import { Clock, evictOnly, layouts, retentionServer } from './retention-fixture.ts'

const server = retentionServer()
const YEAR = 365 * 24 * 3600
const tokens = (clock: Clock) => ({
  secrets: ['a-secret-for-tests-a-secret-for-tests'],
  lifetimeSeconds: 99 * YEAR,
  clock: () => clock.ms,
})
const options = (clock: Clock) => ({
  idleSeconds: Number.POSITIVE_INFINITY,
  janitor: false as const,
  tokens: tokens(clock),
})

describe.each(layouts)('%s: without an idle timeout', (_, keys) => {
  test('sessions stay until they are ended, and the janitor ends only those beyond the maximum', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { ...options(clock), keys })
    const { token } = await store.login('ada')
    const { token: guest } = await store.loginGuest()
    await store.patch(guest, { cart: ['book'] })
    clock.pass(9 * YEAR)
    expect(await store.janitor(evictOnly).runOnce()).toMatchObject({ worked: true, evicted: 0 })
    expect(await store.checkToken(token)).toMatchObject({ user: 'ada' })
    const { token: bought } = await store.login('ada', { from: guest })
    expect((await store.data(bought)).fields).toEqual({ cart: ['book'] })
    await store.patch(token, { theme: 'dark' })
    clock.pass(9 * YEAR)
    expect(await store.touch(token)).toMatchObject({ user: 'ada' })
    expect(await store.recordView(token, 'book', { data: true })).toMatchObject({ views: 1 })
    expect((await store.userSessions(token)).sessions).toHaveLength(2)
    expect(await store.revokeSession(token, idOf(bought))).toBe(true)
    expect((await store.exportUser('ada')).sessions).toHaveLength(1)
    clock.pass(1)
    await store.login('bob')
    const most = store.janitor({ ...evictOnly, maxSessions: 1 })
    expect(await most.runOnce()).toMatchObject({ evicted: 1 })
    await expect(store.checkToken(token)).rejects.toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
  })

  test('external sessions are added as seen now, whatever is left of their lifetime', async () => {
    const warnings = warningsOfThisTest()
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { ...options(clock), keys })
    const external = externalSessions(store)
    expect(await external.add('added', { a: 1 })).toBe('added')
    expect(await external.add('short', { a: 1 }, { leftMs: 5_000 })).toBe('added')
    expect(await external.put('put', { a: 1 })).toBe(true)
    clock.pass(9 * YEAR)
    for (const id of ['added', 'short', 'put']) {
      expect(await external.read(id)).toMatchObject({ fields: { a: 1 } })
      expect(await external.patch(id, { b: 2 })).toBe(true)
    }
    const walked = await Array.fromAsync(external.walk())
    expect(walked.map(({ lastSeenAt }) => lastSeenAt)).toEqual([clock.ms, clock.ms, clock.ms])
    expect(await external.end('short')).toBe(true)

    const adapter = expressSessionStore(store)
    const expires = new Date(Date.now() + 1000 * YEAR).toISOString()
    await new Promise((resolve) => adapter.set('cookie', { cookie: { expires } } as never, resolve))
    expect(warnings).toEqual([]) // no cookie outlives the session
  })

  test('sessions of connect-redis are imported as seen now', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { ...options(clock), keys })
    const redis = new Redis(server.socket)
    onTestFinished(() => redis.disconnect())
    const session = JSON.stringify({ cookie: {}, theme: 'dark' })
    await redis.set('sess:endless', session)
    await redis.set('sess:short', session, 'EX', 60)
    const send = ([name, ...args]: [string, ...string[]]) => redis.call(name, ...args)
    expect(await importConnectRedis(store, { send })).toMatchObject({ imported: 2, existing: 0 })
    clock.pass(9 * YEAR)
    expect(await externalSessions(store).read('endless')).toMatchObject({
      fields: { theme: 'dark' },
    })
    expect(await externalSessions(store).read('short')).toMatchObject({ fields: { theme: 'dark' } })
    const walked = await Array.fromAsync(externalSessions(store).walk())
    const added = clock.ms - 9000 * YEAR
    expect(walked.map(({ lastSeenAt }) => lastSeenAt)).toEqual([added, added])
  })
})

test('a bridge of two stores without an idle timeout lists old sessions', async () => {
  const clock = new Clock()
  const [[, from], [, to]] = layouts as [(typeof layouts)[number], (typeof layouts)[number]]
  const storeOf = (keys: typeof from, database: number) => {
    const url = `unix://${server.socket}?db=${database}`
    const store = createSessionStore({ ...options(clock), url, keys })
    onTestFinished(() => store.close())
    return { store, keys }
  }
  const sides = { from: storeOf(from, 0), to: storeOf(to, 1) }
  const bridge = bridgeStores({ ...sides, home: 'target', clock: () => clock.ms })
  await bridge.ready()
  const { token } = await sides.from.store.login('ada')
  clock.pass(9 * YEAR)
  expect((await bridge.userSessions(token)).sessions).toHaveLength(1)
  expect(await bridge.recordView(token, 'book')).toEqual({ user: 'ada', views: 1 })
})
