import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import {
  articleKeys,
  createSessionStore,
  type SessionStore,
  StoreError,
} from '../src/core/index.ts'
import { pipeline } from '../src/core/sending/wires.ts'
import { idOf } from './fixture.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

const secrets = ['a-secret-for-tests-a-secret-for-tests']
const START = 1_700_000_000_000

const server = redisOfThisFile()

describe.each([
  ['articles', articleKeys],
  ['partitioned', partitionedKeys(8)],
])('%s', (_name, keys) => {
  let now = START
  let store: SessionStore

  beforeAll(async () => {
    store = createSessionStore({
      url: `unix://${server.socket}`,
      keys,
      idleSeconds: 100,
      maxSessionsPerUser: 1_000,
      janitor: 'elsewhere',
      deadlineMs: 20_000,
      tokens: { secrets, clock: () => now },
    })
    await store.ready()
  })

  afterAll(() => store.close())

  beforeEach(() => {
    now = START
  })

  async function login(user: string): Promise<string> {
    now += 1_000
    return (await store.login(user)).token
  }

  test('lists only the sessions of the user, latest first', async () => {
    const first = await login('ada')
    await login('bob')
    const second = await login('ada')
    const { sessions } = await store.userSessions(first)
    expect(sessions).toEqual([
      { id: idOf(second), loggedInAt: now, lastSeenAt: now, current: false },
      { id: idOf(first), loggedInAt: now - 2_000, lastSeenAt: now - 2_000, current: true },
    ])
  })

  test('revokes a session of the user, but none of another user', async () => {
    const [first, second, other] = [await login('ada'), await login('ada'), await login('bob')]
    expect(await store.revokeSession(first, idOf(other))).toBe(false)
    expect(await store.revokeSession(first, 'no-such-session')).toBe(false)
    expect(await store.revokeSession(first, idOf(second))).toBe(true)
    expect(await store.revokeSession(first, idOf(second))).toBe(false)
    await expect(store.checkToken(second)).rejects.toMatchObject({
      code: 'ONETRIP_UNKNOWN_SESSION',
    })
    expect(await store.checkToken(other)).toMatchObject({ user: 'bob' })
    expect((await store.userSessions(first)).sessions).toHaveLength(1)
  })

  test('logs out everywhere and removes everything of the user', async () => {
    const tokens = await Promise.all(Array.from({ length: 250 }, () => store.login('ada')))
    const listedNowhere = issueToken(store)
    await runUpdateToken(store, listedNowhere, 'ada', 'book')
    expect(await store.logoutEverywhere(listedNowhere)).toBe(251)
    for (const { token } of tokens.slice(0, 3)) {
      await expect(store.checkToken(token)).rejects.toMatchObject({
        code: 'ONETRIP_UNKNOWN_SESSION',
      })
    }
    const counts = new Set(keys.allPopular())
    expect((await server.redis.keys('*')).filter((key) => !counts.has(key))).toEqual([])
  })

  test.each([
    ['logoutEverywhere', 'not sent'],
    ['logoutEverywhere', 'half executed'],
    ['endUserSessions', 'not sent'],
    ['endUserSessions', 'half executed'],
    ['eraseUser', 'not sent'],
    ['eraseUser', 'half executed'],
  ] as const)('%s can be repeated after any of its operations was %s', async (name, failure) => {
    const sessions = 120 // two pages
    let operations = 0
    let failing = 0
    const failingStore = createSessionStore({
      sender: {
        name: 'failing',
        async send({ commands }) {
          if (++operations !== failing) return await pipeline.send(server.redis, commands)
          if (failure === 'not sent') throw new StoreError('ONETRIP_NOT_SENT', 'no connection')
          const executed = commands.slice(0, commands.length / 2)
          return [...(await pipeline.send(server.redis, executed)), new Error('no reply')]
        },
        close: async () => {},
      },
      keys,
      janitor: 'elsewhere',
      tokens: { secrets, clock: () => now },
    })
    onTestFinished(() => failingStore.close())
    const left = async () => {
      const logins = keys.parts().map(({ login }) => server.redis.hlen(login))
      return (await Promise.all(logins)).reduce((sum, count) => sum + count)
    }
    for (let at = 1; ; at++) {
      await server.redis.flushall()
      for (let count = 1; count < sessions; count++) await store.login('ada')
      const own = await login('ada') // on the first page
      const end = () =>
        name === 'logoutEverywhere' ? failingStore[name](own) : failingStore[name]('ada')
      operations = 0
      failing = at
      const result = await end().catch((error: unknown) => error)
      failing = 0
      if (result instanceof StoreError) {
        const written = (await left()) < sessions
        expect(result).toMatchObject({ statusCode: 503, retrySafe: true })
        if (written) expect(result).toMatchObject({ mayHaveWritten: true })
        const isOver = (await left()) === 0
        const repeated = await end().catch(({ code }: StoreError) => code)
        if (repeated === 'ONETRIP_UNKNOWN_SESSION') expect(isOver).toBe(true)
        else expect(repeated).toBeTypeOf('number')
      } else expect(result).toBe(sessions)
      expect(await left()).toBe(0)
      if (operations < at) break
    }
  })

  test('removes a list entry without a session, unless its login may be in progress', async () => {
    const token = await login('ada')
    const entry = keys.sessions('ada')
    await server.redis.zadd(entry, START / 1000 - 100, 'long-gone', now / 1000, 'just-logging-in')
    expect((await store.userSessions(token)).sessions).toHaveLength(1)
    expect(await server.redis.zrange(entry, '0', '-1')).not.toContain('long-gone')
    expect(await server.redis.zrange(entry, '0', '-1')).toContain('just-logging-in')
  })

  test('every call rejects an idle session, and a touch prevents that', async () => {
    const [idle, kept] = [await login('ada'), await login('ada')]
    now += 60_000
    expect(await store.touch(kept)).toEqual({ user: 'ada', lastSeenAt: now })
    now += 60_000
    await expect(store.checkToken(idle)).rejects.toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
    await expect(store.touch(idle)).rejects.toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
    expect((await store.userSessions(kept)).sessions.map(({ id }) => id)).toEqual([idOf(kept)])
  })

  test('a touch soon after another writes nothing', async () => {
    const token = await login('ada')
    const seen = now
    now += 5_000
    expect(await store.touch(token, 10)).toEqual({ user: 'ada', lastSeenAt: seen })
    expect(await store.checkToken(token)).toEqual({ user: 'ada', lastSeenAt: seen })
    now += 10_000
    expect(await store.touch(token, 10)).toEqual({ user: 'ada', lastSeenAt: now })
  })

  test('ends all sessions of a user by name', async () => {
    const [ada, bob] = [await login('ada'), await login('bob')]
    expect(await store.endUserSessions('ada')).toBe(1)
    await expect(store.checkToken(ada)).rejects.toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
    expect(await store.checkToken(bob)).toMatchObject({ user: 'bob' })
  })
})
