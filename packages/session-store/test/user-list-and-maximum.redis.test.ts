import { setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { articleKeys, type Keys } from '../src/index.ts'
import type { Outcome } from '../src/redis/outcomes.ts'
import { sendPipeline } from '../src/redis/write-frame.ts'
import { gone, idOf, inMemory, newStore, readyStore, tokens } from './fixture.ts'
import { keysInParts } from './keys-in-parts.ts'
import { Clock, layouts, retentionServer } from './retention-fixture.ts'
import { issueToken, runWriteSession } from './write-session.ts'

const server = retentionServer()
const USER = 'ada'

/** Creates sessions of one user without a maximum. */
async function fill(keys: Keys, clock: Clock, count: number): Promise<void> {
  const maxSessionsPerUser = Number.POSITIVE_INFINITY
  const maxInFlight = count
  const store = await server.storeForThisTest(clock, { keys, maxSessionsPerUser, maxInFlight })
  await Promise.all(Array.from({ length: count }, () => store.login(USER)))
  clock.pass(1)
}

/** A store that reports how many values each of its round trips sent or received. */
function weighingStore(keys: Keys, clock: Clock) {
  const weights: number[] = []
  const weigh = (value: unknown): number =>
    Array.isArray(value) ? value.reduce((sum: number, item) => sum + weigh(item), 0) : 1
  const store = newStore({
    sender: {
      name: 'weighing',
      async send({ commands }): Promise<Outcome[]> {
        const outcomes = await sendPipeline(server.redis, commands)
        weights.push(weigh(commands) + weigh(outcomes))
        return outcomes
      },
      close: async () => {},
    },
    keys,
    tokens: { ...tokens, clock: () => clock.ms },
  })
  return { store, weights }
}

describe.each(layouts)('%s', (_, keys) => {
  test('the list has every session, latest login first', async () => {
    const action = fc.record({
      kind: fc.constantFrom('login', 'login', 'logout'),
      session: fc.nat(20),
      seconds: fc.nat(1), // several have the same login time
    })
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        await server.redis.flushall()
        const { clock, store } = await server.start({ keys })
        const { token: own } = await store.login(USER)
        const model = new Map([[own, clock.ms]])
        for (const { kind, session, seconds } of actions) {
          clock.pass(seconds)
          if (kind === 'login') {
            const { token } = await store.login(USER)
            model.set(token, clock.ms)
          } else {
            const token = [...model.keys()][session]
            if (token === undefined || token === own) continue
            await store.logout(token)
            model.delete(token)
          }
        }
        const { sessions } = await store.userSessions(own)
        const newestFirst = [...model]
          .map(([token, loggedInAt]) => ({ id: idOf(token), loggedInAt }))
          .sort((a, b) => b.loggedInAt - a.loggedInAt || (a.id < b.id ? 1 : -1))
        expect(sessions.map(({ id, loggedInAt }) => ({ id, loggedInAt }))).toEqual(newestFirst)
        await store.close()
      }),
      { numRuns: 40 },
    )
  })

  test('the list of a user with more than 100 sessions is complete, also with equal login times', async () => {
    const clock = new Clock()
    for (const count of [20, 250, 30]) await fill(keys, clock, count)
    const store = await server.storeForThisTest(clock, { keys })
    const token = issueToken(store)
    await runWriteSession(store, token, USER)
    const { sessions } = await store.userSessions(token)
    expect(new Set(sessions.map(({ id }) => id)).size).toBe(300)
    const times = sessions.map(({ loggedInAt }) => loggedInAt)
    expect(times).toEqual(times.toSorted((a, b) => b - a))
  })
})

test.skipIf(inMemory)(
  'each step of listing and of ending many sessions is limited in size',
  async () => {
    const keys = keysInParts(8)
    const clock = new Clock()
    await fill(keys, clock, 5_000)
    const { store, weights } = weighingStore(keys, clock)
    const token = issueToken(store)
    await runWriteSession(store, token, USER)
    weights.length = 0
    expect(await store.logoutEverywhere(token)).toBe(5_001)
    expect(Math.max(...weights)).toBeLessThan(2_500)
    expect(await server.redis.keys('*')).toEqual([])

    for (let step = 0; step < 10; step++) await fill(keys, clock, 50)
    await runWriteSession(store, token, USER)
    weights.length = 0
    expect((await store.userSessions(token)).sessions).toHaveLength(500)
    expect(Math.max(...weights)).toBeLessThan(2_500)
  },
)

const LIMIT = 5

describe('the maximum of sessions per user', () => {
  test('a login beyond it ends the oldest', async () => {
    const { clock, store } = await server.start({ maxSessionsPerUser: LIMIT })
    const other = await store.login('grace')
    const tokens: string[] = []
    for (let logins = 0; logins < LIMIT + 3; logins++) {
      clock.pass(1)
      tokens.push((await store.login(USER)).token)
    }
    const newest = tokens.at(-1) ?? ''
    const kept = tokens.slice(-LIMIT).map(idOf).toReversed()
    const { sessions } = await store.userSessions(newest)
    expect(sessions.map(({ id }) => id)).toEqual(kept)
    for (const token of tokens.slice(0, -LIMIT)) {
      await expect(store.recordView(token, 'book')).rejects.toMatchObject(gone)
    }
    expect(await store.checkToken(other.token)).toMatchObject({ user: 'grace' })
    expect(await server.redis.zcard(articleKeys.recent(''))).toBe(LIMIT + 1)
  })

  test('is 100 by default, and needs no extra round trip below that', async () => {
    const clock = new Clock()
    const { store, weights } = weighingStore(articleKeys, clock)
    for (let logins = 0; logins < 100; logins++) {
      clock.pass(1)
      await store.login(USER)
    }
    expect(weights).toHaveLength(100)
    clock.pass(1)
    const { token } = await store.login(USER)
    expect(weights).toHaveLength(100 + 1 + 4)
    expect((await store.userSessions(token)).sessions).toHaveLength(100)
  })

  test('a login ends all surplus sessions of a user from before the maximum, 100 at a time', async () => {
    const clock = new Clock()
    await fill(articleKeys, clock, 350)
    const { store, weights } = weighingStore(articleKeys, clock)
    await store.login(USER)
    expect(await server.redis.zcard(articleKeys.sessions(USER))).toBe(100)
    expect(Math.max(...weights)).toBeLessThan(2_500)
  })

  test('a login ends surplus sessions behind many entries without a session', async () => {
    const clock = new Clock()
    await fill(articleKeys, clock, LIMIT)
    const beingWritten = Array.from({ length: 250 }, (_, index) => [
      clock.seconds,
      `other-${index}`,
    ])
    await server.redis.zadd(articleKeys.sessions(USER), ...beingWritten.flat())
    const store = await server.storeForThisTest(clock, { maxSessionsPerUser: 1 })
    const { token } = await store.login(USER)
    expect(await server.redis.zrange(articleKeys.recent(''), '0', '-1')).toEqual([idOf(token)])
    expect(await server.redis.zcard(articleKeys.sessions(USER))).toBe(251)
  })

  test('never ends the new session, nor a login in progress', async () => {
    const clock = new Clock()
    await fill(articleKeys, clock, LIMIT)
    const store = await server.storeForThisTest(clock, { maxSessionsPerUser: 1 })
    // The clock of this process is behind, and another login has only written its list entry so far.
    clock.pass(-3_600)
    await server.redis.zadd(articleKeys.sessions(USER), clock.seconds - 1, 'being-written')
    const { token } = await store.login(USER)
    expect(await store.checkToken(token)).toMatchObject({ user: USER })
    const listed = await server.redis.zrange(articleKeys.sessions(USER), '0', '-1')
    expect(listed).toContain('being-written')
    expect(listed).toContain(idOf(token))
  })

  test.skipIf(inMemory)('a login succeeds even if the oldest cannot be ended', async () => {
    const clock = new Clock()
    await fill(articleKeys, clock, LIMIT)
    const store = await server.storeForThisTest(clock, { maxSessionsPerUser: LIMIT })
    await server.redis.call('ACL', 'SETUSER', 'default', '-hdel')
    onTestFinished(() => void server.redis.call('ACL', 'SETUSER', 'default', '+@all'))
    const { token } = await store.login(USER)
    expect(await store.checkToken(token)).toMatchObject({ user: USER })
    await server.redis.call('ACL', 'SETUSER', 'default', '+hdel')
    await store.login(USER)
    expect(await server.redis.zcard(articleKeys.sessions(USER))).toBe(LIMIT)
  })
})

describe('at the maximum of sessions per user', () => {
  const users = Array.from({ length: 30 }, (_, index) => `user-${index}`)

  /** Stores like several processes, and the tokens of `LIMIT` sessions of each user. */
  async function begin({ stores: count = 1, keys = articleKeys }) {
    const clock = new Clock()
    const options = { keys, maxSessionsPerUser: LIMIT }
    const stores = await Promise.all(
      Array.from({ length: count }, () => server.storeForThisTest(clock, options)),
    )
    const [store = expect.fail()] = stores
    const tokens: string[][] = []
    for (const user of users) {
      const own: string[] = []
      for (let login = 0; login < LIMIT; login++) {
        clock.pass(1)
        own.push((await store.login(user)).token)
      }
      tokens.push(own)
    }
    clock.pass(1)
    return { clock, store, stores, tokens }
  }

  test.each(layouts)('%s: a logout and a login at once end no other session', async (_, keys) => {
    const { store, tokens } = await begin({ keys })
    for (const [index, [first = '', ...others]] of tokens.entries()) {
      await Promise.all([store.logout(others.pop() ?? ''), store.login(users[index] ?? '')])
      for (const token of [first, ...others]) await store.checkToken(token)
    }
  })

  test.each([
    [1, 2],
    [1, 5],
    [5, 1],
  ])('%i processes, each with %i logins at once, leave the maximum', async (count, logins) => {
    const { clock, stores } = await begin({ stores: count })
    const starts = stores.flatMap((store) => Array.from({ length: logins }, () => store))
    for (const user of users) {
      await Promise.all(
        starts.map(async (store, index) => {
          await setTimeout(index % 2) // one reads the list when the other has ended a session
          clock.pass(0.001)
          await store.login(user)
        }),
      )
      const left = await server.redis.zcard(articleKeys.sessions(user))
      if (count === 1) expect(left).toBe(LIMIT)
      expect(left).toBeGreaterThanOrEqual(LIMIT)
      clock.pass(1)
      await stores[0]?.login(user)
      expect(await server.redis.zcard(articleKeys.sessions(user))).toBe(LIMIT)
    }
  })

  test.skipIf(inMemory).each([
    [2, 1],
    [5, 1],
    [5, 200],
  ])(
    '%i processes whose clocks differ, each with %i logins at once, leave the maximum',
    async (count, logins) => {
      const { clock } = await begin({})
      const of = (index: number) => ({ ...tokens, clock: () => clock.ms - 5_000 * index })
      const options = { redis: `unix://${server.socket}`, maxSessionsPerUser: LIMIT }
      const starting = Array.from({ length: count }, (_, index) =>
        readyStore({ ...options, tokens: of(index) }),
      )
      const stores = await Promise.all(starting)
      const starts = stores.flatMap((store) => Array.from({ length: logins }, () => store))
      for (const user of users.slice(0, logins === 1 ? 30 : 1)) {
        await Promise.all(starts.map((store) => store.login(user)))
        const left = (await server.redis.hvals(articleKeys.login(''))).filter((own) => own === user)
        expect(left).toHaveLength(LIMIT)
      }
    },
  )

  test('a login that reads the list late ends no session if another has made room', async () => {
    const { clock, store } = await begin({})
    const listing = Promise.withResolvers<void>()
    const otherLogin = Promise.withResolvers<void>()
    const late = newStore({
      sender: {
        name: 'late',
        async send({ commands }): Promise<Outcome[]> {
          if (commands[0]?.[0] === 'ZRANGE') {
            listing.resolve()
            await otherLogin.promise
          }
          return await sendPipeline(server.redis, commands)
        },
        close: async () => {},
      },
      maxSessionsPerUser: LIMIT,
      tokens: { ...tokens, clock: () => clock.ms },
    })
    const [user = ''] = users
    const login = late.login(user)
    await listing.promise
    clock.pass(0.001)
    await store.login(user)
    otherLogin.resolve()
    await login
    expect(await server.redis.zcard(articleKeys.sessions(user))).toBe(LIMIT)
  })
})
