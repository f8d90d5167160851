import cookiePlugin from '@fastify/cookie'
import session from '@fastify/session'
import Fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { expressSessionStore } from '../../src/adapters/express-session.ts'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import { fastifySessionStore } from '../../src/adapters/fastify-session.ts'
import { importConnectRedis } from '../../src/adapters/import-connect-redis.ts'
import type { UserOf } from '../../src/adapters/session-store.ts'
import { partitionedKeys } from '../../src/cluster/index.ts'
import { roundTripChannel, type StoreError } from '../../src/core/index.ts'
import { messagesOf, SECRET, warningsOfThisTest } from '../fixture.ts'
import { retentionServer, sweep } from '../retention-fixture.ts'
import { expressForThisTest } from './express-app.ts'
import { make, migrationForEachTest } from './migration-fixture.ts'

const server = retentionServer()
const migrationForThisTest = migrationForEachTest(server)

const userOf: UserOf = ({ user }) => user as string | null | undefined
const of = (user: string | null, fields: object = {}) => ({ cookie: {}, user, ...fields }) as never
const options = { keys: partitionedKeys(4), idleSeconds: 3_600 }

const adapters = [
  ['express-session', expressSessionStore],
  ['@fastify/session', fastifySessionStore],
] as const

describe.each(adapters)('%s', (_, adapt) => {
  const begin = async (more = {}) => {
    const { clock, store } = await server.start({ ...options, ...more })
    return { clock, store, adapter: adapt(store, { userOf }) }
  }

  test('a session belongs to the user that userOf returns', async () => {
    const { store, adapter } = await begin()
    const listed = async (user: string) => (await adapter.ofUser(user)).sessions.map(({ id }) => id)
    await adapter.set('one', of('ada'))
    await adapter.set('two', of(null))
    expect([await listed('ada'), await listed('bob')]).toEqual([['one'], []])
    expect(await store.recentSessions()).toMatchObject([{ user: null }, { user: 'ada' }])
    await adapter.set('one', of('bob'))
    await adapter.set('two', of('bob'))
    expect([await listed('ada'), (await listed('bob')).sort()]).toEqual([[], ['one', 'two']])
    await adapter.set('one', of(null))
    expect(await listed('bob')).toEqual(['two'])
    expect(await adapter.get('one')).toMatchObject({ user: null })
  })

  test('the functions for the sessions of a user include it', async () => {
    const { store, adapter } = await begin()
    const fill = async () => {
      for (const id of ['one', 'two']) await adapter.set(id, of('ada', { cart: [id] }))
      await adapter.set('other', of('bob'))
      return (await store.login('ada')).token
    }
    const token = await fill()
    const { sessions } = await store.userSessions(token)
    expect(sessions.map(({ id }) => id)).toEqual(expect.arrayContaining(['ext:one', 'ext:two']))
    expect((await store.exportUser('ada')).sessions).toHaveLength(3)
    expect((await store.exportUser('ada')).sessions).toContainEqual(
      expect.objectContaining({ data: { cookie: {}, user: 'ada', cart: ['one'] } }),
    )
    expect(await store.revokeSession(token, 'ext:one')).toBe(true)
    expect(await adapter.get('one')).toBe(null)
    expect(await store.logoutEverywhere(token)).toBe(2)
    await adapter.set('two', of('ada')) // a late save
    expect(await adapter.get('two')).toBe(null)
    expect(await adapter.get('other')).toMatchObject({ user: 'bob' })

    await server.redis.flushall()
    await fill()
    expect(await adapter.endOthers('ada', 'one')).toBe(2)
    expect(await adapter.get('one')).toMatchObject({ user: 'ada' })
    expect(await store.endUserSessions('ada')).toBe(1)
    expect(await adapter.get('one')).toBe(null)

    await server.redis.flushall()
    await fill()
    expect(await store.eraseUser('ada')).toBe(3)
    const keys = Object.keys(await server.dump())
    expect(keys.filter((key) => key.includes('one') || key.includes('ada'))).toEqual([
      options.keys.ended('ext:one'),
    ])
  })

  test('an id that ended by the list of its user stays blocked for idleSeconds', async () => {
    const { store, adapter } = await begin()
    await adapter.set('one', of('ada'))
    await store.endUserSessions('ada')
    expect(await server.redis.ttl(options.keys.ended('ext:one'))).toBeGreaterThan(3_500)
  })

  test('a login beyond maxSessionsPerUser ends the oldest session', async () => {
    const { clock, store, adapter } = await begin({ maxSessionsPerUser: 2 })
    await adapter.set('one', of('ada'))
    clock.pass(1)
    await store.login('ada')
    clock.pass(1)
    await adapter.set('two', of('ada'))
    expect(await adapter.get('one')).toBe(null)
    await adapter.set('one', of('ada')) // a late save
    expect(await adapter.get('one')).toBe(null)
    expect((await adapter.ofUser('ada')).sessions).toHaveLength(1)
  })

  test('pages of the list have any ids', async () => {
    const { clock, adapter } = await begin()
    const ids = ['a b\n', `ü${'x'.repeat(1_000)}`, 'c:d']
    for (const id of ids) {
      clock.pass(1)
      await adapter.set(id, of('ada'))
    }
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await adapter.ofUser('ada', { limit: 1, cursor })
      found.push(...page.sessions.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(found).toEqual(ids.toReversed())
  })

  test('only a change of the user takes more than one round trip', async () => {
    const { adapter } = await begin()
    const trips = messagesOf(roundTripChannel)
    const tripsOf = async (call: () => Promise<unknown>) => {
      trips.length = 0
      await call()
      return trips.length
    }
    expect(await tripsOf(() => adapter.set('one', of('ada')))).toBe(3)
    expect(await tripsOf(() => adapter.set('one', of('ada', { theme: 'dark' })))).toBe(1)
    expect(await tripsOf(() => adapter.get('one'))).toBe(1)
    expect(await tripsOf(() => adapter.set('guest', of(null)))).toBe(1)
  })

  test('a session from before userOf gets its user when it is loaded', async () => {
    const { store, adapter } = await begin()
    await adapt(store).set('one', of('ada', { cart: ['book'] }))
    expect(await store.endUserSessions('ada')).toBe(0)
    expect(await adapter.get('one')).toEqual(of('ada', { cart: ['book'] }))
    expect(await adapter.get('one')).toEqual(of('ada', { cart: ['book'] }))
    expect(await store.endUserSessions('ada')).toBe(1)
  })

  test('a userOf that always returns another user ends no session and no process', async () => {
    const { store } = await begin()
    let calls = 0
    const adapter = adapt(store, { userOf: () => `user ${calls++}` })
    await adapter.set('one', of('ada'))
    expect(await adapter.get('one')).toEqual(of('ada'))
    expect(await store.endUserSessions(`user ${calls - 2}`)).toBe(1)
  })

  test.each<[string, UserOf, Partial<StoreError>]>([
    [
      'throws',
      ({ user }) => (user as { name: string }).name.toUpperCase(),
      { code: 'ONETRIP_WRONG_TYPE', message: 'userOf threw TypeError' },
    ],
    [
      'returns a number',
      () => 42 as never,
      { code: 'ONETRIP_WRONG_TYPE', message: 'the user that userOf returns must be a string' },
    ],
    ['is async', (async () => 'ada') as never, { code: 'ONETRIP_WRONG_TYPE' }],
    ['returns an empty name', () => '', { code: 'ONETRIP_INVALID_INPUT' }],
    ['returns a long name', () => 'x'.repeat(129), { code: 'ONETRIP_INVALID_INPUT' }],
  ])('a userOf that %s fails the call, and the session stays', async (_, broken, error) => {
    warningsOfThisTest()
    const { store, adapter } = await begin()
    await adapter.set('one', of('ada'))
    const before = await server.dump()
    const failing = adapt(store, { userOf: broken })
    await expect(failing.set('one', of('ada', { cart: [] }))).rejects.toMatchObject(error)
    await expect(failing.get('one')).rejects.toMatchObject(error)
    await expect(failing.set('two', of('ada'))).rejects.toMatchObject(error)
    expect(await server.dump()).toEqual(before)
    expect(await failing.destroy('one')).toBe(undefined)
  })

  test('userOf must be a function', async () => {
    const { store } = await begin()
    expect(() => adapt(store, { userOf: 'user' as never })).toThrow('userOf must be a function')
  })

  test('the sweep removes what remains of a user that a session no longer has', async () => {
    const { clock, store, adapter } = await begin()
    await adapter.set('one', of('ada'))
    await adapter.set('one', of('bob'))
    clock.pass(100)
    expect(await sweep(store)).toMatchObject({ swept: 1 })
    expect(await server.redis.exists('sessions:ada')).toBe(0)
    expect((await adapter.ofUser('bob')).sessions).toHaveLength(1)
  })

  test('migrateFrom and the import enter sessions in the list of their user', async () => {
    const { store, old, send } = await migrationForThisTest()
    for (const id of ['one', 'two', 'three']) await make(old, id, { user: 'ada' }, 600)
    await make(old, 'odd', { user: 42 }, 600)
    const adapter = adapt(store, { userOf, migrateFrom: old })
    await adapter.get('one')
    const imported = { imported: 2, existing: 0, skipped: { 'no valid user': 1 } }
    expect(await importConnectRedis(store, { send, userOf })).toEqual(imported)
    const { sessions } = await adapter.ofUser('ada')
    expect(sessions.map(({ id }) => id).sort()).toEqual(['one', 'three', 'two'])
    // The old store has no session of the copy `two`, so it ends.
    await old.destroy('two')
    expect(await adapter.get('two')).toBe(null)
    expect(await store.endUserSessions('ada')).toBe(2)
    // The old store still has it.
    expect(await adapter.get('three')).toBe(null)
    expect(await externalSessions(store).add('three', {})).toBe('ended')
    await expect(adapter.get('odd')).rejects.toThrow('must be a string')
    expect(await old.get('odd')).toMatchObject({ user: 42 })
  })
})

test('express-session: userOf that throws is an error of the request, and nothing is lost', async () => {
  const warnings = warningsOfThisTest()
  const throwing: UserOf = ({ user }) => {
    if (user === 'bad') throw new RangeError('about ada')
    return user as string | undefined
  }
  const { adapter, browser, failures } = await expressForThisTest(server, {
    adapter: { userOf: throwing },
  })
  const ask = browser()
  const { id } = await ask({ set: { user: 'ada' } })
  await ask({ set: { user: 'bad', cart: ['book'] } })
  const error = expect.objectContaining({ message: 'userOf threw RangeError' })
  await expect.poll(() => failures).toEqual([{ error, headersSent: true }])
  expect(warnings).toMatchObject([{ code: 'ONETRIP_SESSION_NOT_SAVED' }])
  expect(await adapter.get(id)).toMatchObject({ user: 'ada' })
  expect(await adapter.get(id)).not.toHaveProperty('cart')
})

test('express-session: a request that does not change the user keeps that of a parallel login', async () => {
  const { adapter, store, browser, hold } = await expressForThisTest(server, {
    adapter: { userOf },
  })
  const ask = browser()
  const { id } = await ask({ set: { theme: 'dark' } })
  const slow = hold('slow')
  const late = ask({ set: { cart: ['book'] }, hold: 'slow' })
  await slow.arrived
  await ask({ set: { user: 'ada' } })
  slow.release()
  await late
  expect(await adapter.get(id)).toMatchObject({ user: 'ada', cart: ['book'] })
  expect(await store.endUserSessions('ada')).toBe(1)
  expect(await adapter.get(id)).toBe(null)
})

test('@fastify/session: userOf that throws is the error of the response', async () => {
  const warnings = warningsOfThisTest()
  const store = (await server.start(options)).store
  const app = Fastify()
  onTestFinished(() => app.close())
  await app.register(cookiePlugin)
  const throwing = () => {
    throw new RangeError('about ada')
  }
  await app.register(session, {
    secret: SECRET,
    cookie: { secure: false },
    saveUninitialized: false,
    store: fastifySessionStore(store, { userOf: throwing }),
  })
  app.post('/set', async (request) => Object.assign(request.session, { user: 'ada' }) && {})
  const response = await app.inject({ method: 'POST', url: '/set' })
  expect(response.statusCode).toBe(500)
  expect(response.json().message).toBe('userOf threw RangeError')
  expect(warnings).toMatchObject([{ code: 'ONETRIP_SESSION_NOT_SAVED' }])
  expect(await server.dump()).toEqual({})
})
