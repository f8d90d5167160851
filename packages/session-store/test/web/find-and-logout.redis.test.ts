import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { roundTripChannel } from '../../src/index.ts'
import { gone, messagesOf, tokens } from '../fixture.ts'
import { appForThisTest, frameworks } from './framework-apps.ts'

const server = redisOfThisFile()

const storeOptions = (redis: { socket: string } = server) => ({
  redis: `unix://${redis.socket}`,
  janitor: 'elsewhere' as const,
  deadlineMs: 30_000,
})

describe.each(Object.entries(frameworks))('%s', (_, start) => {
  /** The routes, with a clock that tests can set, and requests that have no session. */
  async function running(redis: { socket: string } = server) {
    let now = Date.now()
    const options = { ...tokens, lifetimeSeconds: 60, clock: () => now }
    const app = await appForThisTest(start, { ...storeOptions(redis), tokens: options })
    const expired = await app.login()
    now += 61_000
    const ended = await app.login()
    await app.store.logout(ended.token)
    const withoutSession: [string, Record<string, string>][] = [
      ['no token', {}],
      ['another cookie', { cookie: 'theme=dark' }],
      ['an empty cookie', { cookie: '__Host-onetrip=' }],
      ['an invalid cookie', { cookie: '__Host-onetrip=planted' }],
      ['an expired cookie', { cookie: expired.cookie }],
      ['the cookie of an ended session', { cookie: ended.cookie }],
      ['an invalid token', { authorization: 'Bearer planted' }],
      ['an expired token', { authorization: `Bearer ${expired.token}` }],
      ['the token of an ended session', { authorization: `Bearer ${ended.token}` }],
    ]
    return { ...app, withoutSession }
  }

  test('find returns the session with its data, or null', async () => {
    const { send, login, withoutSession } = await running()
    const { cookie, token } = await login()
    const found = { user: 'ada', data: { fields: {}, version: 0 } }
    expect((await send('GET', '/find', { cookie })).body).toMatchObject({ found })
    const bearer = { authorization: `Bearer ${token}` }
    expect((await send('POST', '/find', bearer)).body).toMatchObject({ found })
    for (const [what, headers] of withoutSession) {
      const { status, body } = await send('POST', '/find', headers)
      expect({ status, body }, what).toEqual({ status: 200, body: { found: null } })
    }
  })

  test('find takes one round trip, and none without a token', async () => {
    const { send, login } = await running()
    const { cookie } = await login()
    const roundTrips = messagesOf(roundTripChannel)
    await send('GET', '/find')
    await send('GET', '/find', { cookie: '__Host-onetrip=planted' })
    expect(roundTrips).toHaveLength(0)
    await send('GET', '/find', { cookie })
    expect(roundTrips).toHaveLength(1)
  })

  test('find fails if the question cannot be answered', async () => {
    const redis = await redisForThisTest()
    const { send, login } = await running(redis)
    const { cookie } = await login()
    const crossSite = await send('POST', '/find', { cookie, 'sec-fetch-site': 'cross-site' })
    expect(crossSite).toMatchObject({ status: 403, body: { code: 'ONETRIP_CROSS_SITE' } })
    const twice = await send('GET', '/find', { cookie: `${cookie}; ${cookie}` })
    expect(twice).toMatchObject({ status: 400, body: { code: 'ONETRIP_SEVERAL_COOKIES' } })
    redis.program.signal('SIGKILL')
    await redis.program.exited
    expect((await send('GET', '/find', { cookie })).status).toBe(503)
  })

  test('a logout without a session returns false, and removes the cookie if there was one', async () => {
    const { send, withoutSession } = await running()
    for (const [what, headers] of withoutSession) {
      const { status, body, headers: answer } = await send('POST', '/logout', headers)
      expect({ status, body }, what).toEqual({ status: 200, body: { ended: false } })
      const removed = headers.cookie?.startsWith('__Host-onetrip') ? ['__Host-onetrip=;'] : []
      const cookies = answer.getSetCookie().map((cookie) => cookie.split(' ')[0])
      expect(cookies, what).toEqual(removed)
    }
  })

  test('a logout ends the session; a bearer token without a cookie gets no Set-Cookie', async () => {
    const { send, login, store } = await running()
    const byCookie = await login()
    const answer = await send('POST', '/logout', { cookie: byCookie.cookie })
    expect(answer.body).toEqual({ ended: true })
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-onetrip=; Max-Age=0;/),
    ])
    const byToken = await login()
    const second = await send('POST', '/logout', { authorization: `Bearer ${byToken.token}` })
    expect([second.body, second.headers.getSetCookie()]).toEqual([{ ended: true }, []])
    for (const { token } of [byCookie, byToken]) {
      await expect(store.checkToken(token)).rejects.toMatchObject(gone)
    }
  })

  test('a logout with a bearer token leaves the cookie of another session', async () => {
    const { send, login, store } = await running()
    const [own, other] = [await login(), await login()]
    const authorization = `Bearer ${own.token}`
    const answer = await send('POST', '/logout', { authorization, cookie: other.cookie })
    expect([answer.body, answer.headers.getSetCookie()]).toEqual([{ ended: true }, []])
    await expect(store.checkToken(own.token)).rejects.toThrow('has ended')
    expect(await store.checkToken(other.token)).toMatchObject({ user: 'ada' })
    const last = await send('POST', '/logout', {
      authorization: `Bearer ${other.token}`,
      cookie: other.cookie,
    })
    expect(last.headers.getSetCookie()).toHaveLength(1)
  })

  test('a logout from another site is rejected, with or without a session', async () => {
    const { send, login, store } = await running()
    const { cookie, token } = await login()
    for (const headers of [{ cookie }, { cookie: '__Host-onetrip=planted' }, {}]) {
      const answer = await send('POST', '/logout', { ...headers, 'sec-fetch-site': 'cross-site' })
      expect(answer).toMatchObject({ status: 403, body: { code: 'ONETRIP_CROSS_SITE' } })
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expect(await store.checkToken(token)).toMatchObject({ user: 'ada' })
  })
})
