import type { StoreError } from '@onetrip/session-store'
import { describe, expect, test } from 'vitest'
import { inMemory } from '../../session-store/test/fixture.ts'
import { ExpressSessionStore, type StoreOptions } from '../src/express.ts'
import { FastifySessionStore } from '../src/fastify.ts'
import { FORGET, WRITE } from '../src/scripts.ts'
import { ended, justBefore, roundTripsOfThisTest, sessionServer } from './fixture.ts'

const server = sessionServer()

type UserOf = NonNullable<StoreOptions['userOf']>

const userOf: UserOf = ({ user }) => user as string | null | undefined
const of = (user: string | null, fields: object = {}) => ({ cookie: {}, user, ...fields }) as never
const HOUR = 3_600_000
/** A cookie that expires. */
const lasting = (ms: number) => ({ cookie: { expires: new Date(Date.now() + ms) } })

const adapters = [
  ['express-session', ExpressSessionStore],
  ['@fastify/session', FastifySessionStore],
] as const

describe.each(adapters)('%s', (_, Store) => {
  const begin = async (options: StoreOptions = {}) => {
    const store = await server.start()
    return { store, adapter: new Store(store, { userOf, ...options }) }
  }

  test('a session belongs to the user that userOf returns', async () => {
    const { adapter } = await begin()
    const listed = async (user: string) => (await adapter.ofUser(user)).map(({ id }) => id)
    await adapter.set('one', of('ada'))
    await adapter.set('two', of(null))
    expect([await listed('ada'), await listed('bob')]).toEqual([['one'], []])
    await adapter.set('one', of('bob'))
    await adapter.set('two', of('bob'))
    expect([await listed('ada'), (await listed('bob')).sort()]).toEqual([[], ['one', 'two']])
    await adapter.set('one', of(null))
    expect(await listed('bob')).toEqual(['two'])
    expect(await adapter.get('one')).toMatchObject({ user: null })
  })

  test('ofUser returns what each session holds, latest login first', async () => {
    const { adapter } = await begin()
    await adapter.set('one', of('ada', { device: 'phone' }))
    const loggedInAt = await server.redis.zincrby('express:user:ada', -1_000, 'one')
    await adapter.set('two', of('ada', { device: 'laptop' }))
    expect(await adapter.ofUser('ada')).toEqual([
      { id: 'two', loggedInAt: expect.any(Number), session: of('ada', { device: 'laptop' }) },
      { id: 'one', loggedInAt: Number(loggedInAt), session: of('ada', { device: 'phone' }) },
    ])
    await expect(adapter.ofUser('')).rejects.toMatchObject({ code: 'ONETRIP_INVALID_INPUT' })
  })

  test('endOthers ends all but one, endUserSessions all; ids may have any characters', async () => {
    const { adapter } = await begin()
    const ids = ['a b\n', `ü${'x'.repeat(1_000)}`, 'c:d', '}{', '{x}']
    for (const id of ids) await adapter.set(id, of('ada'))
    await adapter.set('other', of('bob'))
    expect((await adapter.ofUser('ada')).map(({ id }) => id).sort()).toEqual(ids.toSorted())
    expect(await adapter.endOthers('ada', 'c:d')).toBe(ids.length - 1)
    expect(await server.dump()).toMatchObject({
      'express:a b\n': ended,
      'express:user:ada': ['c:d'],
    })
    expect(await adapter.endUserSessions('ada')).toBe(1)
    await adapter.set('c:d', of('ada')) // a late save
    expect(await adapter.get('c:d')).toBe(null)
    expect(await adapter.endUserSessions('ada')).toBe(0)
    expect(await adapter.get('other')).toMatchObject({ user: 'bob' })
  })

  test('the list of a user ends no session that has become that of another one', async () => {
    const { adapter } = await begin()
    await adapter.set('one', of('ada'))
    await adapter.set('one', of('bob'))
    expect(await adapter.endUserSessions('ada')).toBe(0)
    expect(await adapter.get('one')).toMatchObject({ user: 'bob' })
  })

  test('a login beyond maxSessionsPerUser ends the oldest session', async () => {
    const { adapter } = await begin({ maxSessionsPerUser: 2 })
    await adapter.set('one', of('ada'))
    await server.redis.zincrby('express:user:ada', -1_000, 'one')
    await adapter.set('two', of('ada'))
    await adapter.set('three', of('ada'))
    expect(await adapter.get('one')).toBe(null)
    await adapter.set('one', of('ada')) // a late save
    expect(await adapter.get('one')).toBe(null)
    expect(await adapter.ofUser('ada')).toHaveLength(2)
  })

  test.skipIf(inMemory)('only a change of the user takes more than one round trip', async () => {
    const { adapter } = await begin()
    const trips = roundTripsOfThisTest()
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

  test('the list of a user lives longer than its sessions', async () => {
    const { adapter } = await begin()
    const left = (key: string) => server.redis.pttl(`express:${key}`)
    for (const [id, ms] of Object.entries({ a: HOUR, b: 90 * 24 * HOUR, c: HOUR })) {
      await adapter.set(id, of('ada', lasting(ms)))
      expect(await left(id)).toBeGreaterThan(ms - 60_000)
      expect(await left('user:ada')).toBeGreaterThan(await left(id === 'c' ? 'b' : id))
    }
  })

  test('a session from before userOf gets its user when it is loaded', async () => {
    const { store, adapter } = await begin()
    const session = of('ada', { cart: ['book'], ...lasting(30 * 24 * HOUR) })
    await new Store(store).set('one', session)
    expect(await adapter.endUserSessions('ada')).toBe(0)
    expect(await adapter.get('one')).toMatchObject({ cart: ['book'] })
    expect(await server.redis.pttl('express:one')).toBeGreaterThan(29 * 24 * HOUR)
    expect(await server.redis.pttl('express:user:ada')).toBeGreaterThan(29 * 24 * HOUR)
    expect(await adapter.endUserSessions('ada')).toBe(1)
  })

  test('a session from before userOf gets no user that it has lost meanwhile', async () => {
    const { store, adapter } = await begin()
    await new Store(store).set('one', of('ada'))
    const logout = () => adapter.set('one', of('bob'))
    const late = new Store(justBefore(WRITE, store, logout), { userOf })
    await late.get('one')
    expect(await adapter.endUserSessions('ada')).toBe(0)
    expect(await adapter.endUserSessions('bob')).toBe(1)
  })

  test('a session that becomes one of the user again stays in the list', async () => {
    const { store, adapter } = await begin()
    await adapter.set('one', of('ada'))
    await adapter.set('one', of('bob'))
    await server.redis.zincrby('express:user:ada', -301_000, 'one')
    const login = () => adapter.set('one', of('ada'))
    await new Store(justBefore(FORGET, store, login), { userOf }).ofUser('ada')
    expect(await adapter.ofUser('ada')).toHaveLength(1)
  })

  test('a userOf that always returns another user ends no session and no process', async () => {
    const { store } = await begin()
    let calls = 0
    const adapter = new Store(store, { userOf: () => `user ${calls++}` })
    await adapter.set('one', of('ada'))
    expect(await adapter.get('one')).toEqual(of('ada'))
    expect(await adapter.get('one')).toEqual(of('ada'))
  })

  test.each<[string, UserOf, Partial<StoreError>]>([
    [
      'throws',
      ({ user }) => (user as { name: string }).name.toUpperCase(),
      { code: 'ONETRIP_WRONG_TYPE', message: 'userOf threw TypeError' },
    ],
    [
      'is async',
      (async () => 'ada') as never,
      { code: 'ONETRIP_WRONG_TYPE', message: 'the user of a session must be a string' },
    ],
    ['returns a long name', () => 'x'.repeat(129), { code: 'ONETRIP_INVALID_INPUT' }],
  ])('a userOf that %s fails the call, and the session stays', async (_, broken, error) => {
    const { store, adapter } = await begin()
    await adapter.set('one', of('ada'))
    const before = await server.dump()
    const failing = new Store(store, { userOf: broken })
    for (const call of [
      failing.set('one', of('ada', { cart: [] })),
      failing.get('one'),
      failing.set('two', of('ada')),
    ])
      await expect(call).rejects.toMatchObject(error)
    expect(await server.dump()).toEqual(before)
    expect(await failing.destroy('one')).toBe(undefined)
  })

  test('what remains in the list of a user that a session no longer has is removed later', async () => {
    const { adapter } = await begin()
    await adapter.set('one', of('ada'))
    await adapter.set('two', of('ada'))
    await adapter.set('one', of('bob'))
    await adapter.ofUser('ada')
    expect(await server.redis.zcard('express:user:ada')).toBe(2) // it may become ada's at any moment
    await server.redis.zincrby('express:user:ada', -301_000, 'one')
    expect(await adapter.ofUser('ada')).toHaveLength(1)
    expect(await server.redis.zrange('express:user:ada', '0', '-1')).toEqual(['two'])
    expect(await adapter.ofUser('bob')).toHaveLength(1)
  })
})
