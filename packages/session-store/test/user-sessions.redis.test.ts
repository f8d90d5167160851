import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { beforeEach, describe, expect, test } from 'vitest'
import { articleKeys, type SessionStore, StoreError } from '../src/index.ts'
import { sendPipeline } from '../src/redis/write-frame.ts'
import { codeOf, gone, idOf, newStore, readyStore, tokens } from './fixture.ts'
import { keysInParts } from './keys-in-parts.ts'

const START = 1_700_000_000_000

const server = redisOfThisFile()

describe.each([
  ['articles', articleKeys],
  ['in parts', keysInParts(8)],
])('%s', (_name, keys) => {
  let now = START
  let store: SessionStore

  beforeEach(async () => {
    now = START
    store = await readyStore({
      redis: `unix://${server.socket}`,
      keys,
      idleSeconds: 100,
      maxSessionsPerUser: 1_000,
      tokens: { ...tokens, clock: () => now },
    })
  })

  async function login(user: string): Promise<string> {
    now += 1_000
    return (await store.login(user)).token
  }

  test('revokes a session of the user, but none of another user', async () => {
    const [first, second, other] = [await login('ada'), await login('ada'), await login('bob')]
    expect(await store.revokeSession(first, idOf(other))).toBe(false)
    expect(await store.revokeSession(first, 'no-such-session')).toBe(false)
    expect(await store.revokeSession(first, idOf(second))).toBe(true)
    expect(await store.revokeSession(first, idOf(second))).toBe(false)
    await expect(store.checkToken(second)).rejects.toMatchObject(gone)
    expect(await store.checkToken(other)).toMatchObject({ user: 'bob' })
    expect((await store.userSessions(first)).sessions).toHaveLength(1)
  })

  test('removes a list entry without a session, unless its login may be in progress', async () => {
    const token = await login('ada')
    const entry = keys.sessions('ada')
    await server.redis.zadd(entry, START / 1000 - 100, 'long-gone', now / 1000, 'just-logging-in')
    expect((await store.userSessions(token)).sessions).toHaveLength(1)
    expect(await server.redis.zrange(entry, '0', '-1')).not.toContain('long-gone')
    expect(await server.redis.zrange(entry, '0', '-1')).toContain('just-logging-in')
  })

  test('a label is listed, is no data, and does not count towards the limit of fields', async () => {
    const label = 'é'.repeat(100) // 200 bytes
    const { token } = await store.login('ada', { label })
    await store.login('ada', { label: '' })
    const labels = async () => (await store.userSessions(token)).sessions.map(({ label }) => label)
    expect((await labels()).toSorted()).toEqual([label, undefined])
    expect(await store.data(token)).toEqual({ fields: {}, version: 0 })
    const fields = Object.fromEntries(
      Array.from({ length: 64 }, (_, index) => [`f${index}`, index]),
    )
    await store.patch(token, { f0: 0 }, { ifVersion: 0 })
    expect(await store.patch(token, fields)).toEqual({ version: 2 })
    await expect(store.patch(token, { more: 1 })).rejects.toThrow('more than 64 fields')
    expect(await store.data(token)).toEqual({ fields, version: 2 })
    expect(await labels()).toContain(label)
    expect(await store.logoutEverywhere(token)).toBe(2)
    expect(await server.redis.exists(keys.data(idOf(token)))).toBe(0)
  })

  test('ends all other sessions of the user, and keeps this one', async () => {
    const [first, own, last] = [await login('ada'), await login('ada'), await login('ada')]
    const other = await login('bob')
    expect(await store.endOtherSessions(own)).toBe(2)
    for (const token of [first, last]) {
      await expect(store.endOtherSessions(token)).rejects.toMatchObject(gone)
    }
    expect((await store.userSessions(own)).sessions).toMatchObject([{ id: idOf(own) }])
    expect(await store.checkToken(other)).toMatchObject({ user: 'bob' })
    const { token: guest } = await store.loginGuest()
    expect(await store.endOtherSessions(guest)).toBe(0)
    expect(await store.endOtherSessions(own)).toBe(0)
  })

  test('every call rejects an idle session, and a touch prevents that; soon after another, it writes nothing', async () => {
    const [idle, kept] = [await login('ada'), await login('ada')]
    now += 60_000
    expect(await store.touch(kept)).toEqual({ user: 'ada', lastSeenAt: now })
    now += 60_000
    await expect(store.checkToken(idle)).rejects.toMatchObject(gone)
    await expect(store.touch(idle)).rejects.toMatchObject(gone)
    expect((await store.userSessions(kept)).sessions.map(({ id }) => id)).toEqual([idOf(kept)])
    const lastSeenAt = now - 60_000
    expect(await store.touch(kept, 61)).toEqual({ user: 'ada', lastSeenAt })
    expect(await store.checkToken(kept)).toEqual({ user: 'ada', lastSeenAt })
    expect(await store.touch(kept, 60)).toEqual({ user: 'ada', lastSeenAt: now })
  })
})

test.each(['logoutEverywhere', 'endUserSessions'] as const)(
  '%s can be repeated after any of its operations was not sent, or half executed',
  async (name) => {
    const keys = keysInParts(8)
    const sessions = 120 // two steps
    let operations = 0
    let failing = 0
    let isSent = false
    const store = newStore({
      sender: {
        name: 'failing',
        async send({ commands }) {
          if (++operations !== failing) return await sendPipeline(server.redis, commands)
          if (!isSent) throw new StoreError('ONETRIP_NOT_SENT', 'no connection')
          const executed = commands.slice(0, commands.length / 2)
          return [...(await sendPipeline(server.redis, executed)), new Error('no reply')]
        },
        close: async () => {},
      },
      keys,
      maxSessionsPerUser: 1_000,
    })
    const left = async () => {
      const logins = keys.parts().map(({ login }) => server.redis.hlen(login))
      return (await Promise.all(logins)).reduce((sum, count) => sum + count)
    }
    /** Returns whether there is an operation with this number. */
    async function failAt(at: number): Promise<boolean> {
      await server.redis.flushall()
      const logins = await Promise.all(Array.from({ length: sessions }, () => store.login('ada')))
      const own = logins.at(-1)?.token ?? '' // in the first step
      const end = () => store[name](name === 'logoutEverywhere' ? own : 'ada')
      operations = 0
      failing = at
      const result = await end().catch((error: unknown) => error)
      failing = 0
      if (result instanceof StoreError) {
        const before = await left()
        expect(result).toMatchObject({ statusCode: 503, retrySafe: true })
        if (before < sessions) expect(result).toMatchObject({ mayHaveWritten: true })
        const repeated = await end().catch(codeOf)
        if (repeated === 'ONETRIP_UNKNOWN_SESSION') expect(before).toBe(0)
        else expect(repeated).toBeTypeOf('number')
      } else expect(result).toBe(sessions)
      expect(await left()).toBe(0)
      return operations >= at
    }
    for (isSent of [false, true]) {
      for (let at = 1; await failAt(at); at++);
    }
  },
)
