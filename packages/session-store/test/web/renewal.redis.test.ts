import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { roundTripChannel } from '../../src/index.ts'
import { gone, messagesOf, tokens } from '../fixture.ts'
import { appForThisTest, frameworks, type Options } from './framework-apps.ts'

const server = redisOfThisFile()

const DAY = 86_400_000

const tokenOf = (header: string | undefined) => header?.split(/[=;]/)[1] ?? ''
const cookiesOf = ({ headers }: { headers: Headers }) => headers.getSetCookie()

describe.each(Object.entries(frameworks))('%s', (_, start) => {
  /** An application whose tokens live for ten days and are renewed after one, and a user who is logged in. */
  async function running(cookie?: object, renewal: object = { renewAfterSeconds: 86_400 }) {
    const time = { now: Date.now() }
    const lifetimes = { lifetimeSeconds: 864_000, rememberedLifetimeSeconds: 1_728_000, ...renewal }
    const app = await appForThisTest(start, {
      redis: `unix://${server.socket}`,
      tokens: { ...tokens, ...lifetimes, clock: () => time.now },
      janitor: 'elsewhere',
      deadlineMs: 30_000,
      cookie,
    } as Options)
    return { ...app, time, ...(await app.login()) }
  }

  test('a call with an old token renews the cookie: the session lives on, and the old token does not', async () => {
    const { send, store, time, token, cookie } = await running()
    time.now += DAY - 1
    expect(cookiesOf(await send('GET', '/me', { cookie }))).toEqual([])
    time.now += 1
    const roundTrips = messagesOf(roundTripChannel)
    const answer = await send('GET', '/me', { cookie })
    expect(roundTrips).toHaveLength(1)
    expect(answer.body).toMatchObject({ user: 'ada' })
    const [header] = cookiesOf(answer)
    expect(cookiesOf(answer)).toEqual([
      expect.stringMatching(
        /^__Host-onetrip=.*; Max-Age=9\d{5};.* HttpOnly; Secure; SameSite=Lax$/,
      ),
    ])
    const renewed = tokenOf(header)
    await store.touch(renewed)
    time.now += 9 * DAY
    await expect(store.checkToken(token)).rejects.toMatchObject({ code: 'ONETRIP_EXPIRED_TOKEN' })
    expect(await store.checkToken(renewed)).toMatchObject({ user: 'ada' })
    expect((await store.userSessions(renewed)).sessions).toMatchObject([
      { id: token.split('.')[0], loggedInAt: time.now - 10 * DAY, current: true },
    ])
  })

  test('a logout ends all tokens of the session', async () => {
    const { send, store, time, token, cookie } = await running()
    time.now += DAY
    const renewed = tokenOf(cookiesOf(await send('GET', '/me', { cookie }))[0])
    expect(await store.logout(token)).toBe(true)
    for (const one of [token, renewed]) {
      await expect(store.checkToken(one)).rejects.toMatchObject(gone)
    }
  })

  test.each([
    'GET /find',
    'GET /me',
    'POST /me',
    'POST /views/book',
    'GET /viewed',
    'GET /data',
    'POST /data/dark',
    'GET /twice',
  ])('%s renews the cookie, once', async (route) => {
    const { send, time, cookie } = await running()
    time.now += DAY
    const [method = '', path = ''] = route.split(' ')
    const answer = await send(method, path, { cookie })
    expect([answer.status, cookiesOf(answer)]).toEqual([200, [expect.any(String)]])
  })

  test('nothing is renewed for an ended or expired session, a bearer token, or without the option', async () => {
    const { send, store, time, token, cookie } = await running()
    time.now += DAY
    const bearer = { authorization: `Bearer ${token}` }
    expect(cookiesOf(await send('GET', '/me', bearer))).toEqual([])
    await store.logout(token)
    const ended = await send('GET', '/me', { cookie })
    expect([ended.status, cookiesOf(ended)]).toEqual([401, []])
    expect(cookiesOf(await send('GET', '/find', { cookie }))).toEqual([])

    const expiring = await running()
    expiring.time.now += 10 * DAY
    const late = await expiring.send('GET', '/me', { cookie: expiring.cookie })
    expect([late.status, cookiesOf(late)]).toEqual([401, []])

    const off = await running(undefined, {})
    off.time.now += 9 * DAY
    const kept = await off.send('GET', '/me', { cookie: off.cookie })
    expect([kept.status, cookiesOf(kept)]).toEqual([200, []])
  })

  test('a client with a bearer token asks for a renewed one, in one round trip', async () => {
    const { send, store, time, token } = await running()
    const renew = (one: string) => send('POST', '/renew', { authorization: `Bearer ${one}` })
    expect((await renew(token)).body).toMatchObject({ token })
    time.now += DAY
    const roundTrips = messagesOf(roundTripChannel)
    const { body, ...answer } = await renew(token)
    expect([roundTrips.length, cookiesOf(answer)]).toEqual([1, []])
    expect(body).toEqual({
      token: expect.not.stringMatching(token),
      expiresAt: time.now + 10 * DAY,
    })
    expect(await store.checkToken(body.token)).toMatchObject({ user: 'ada' })
    await store.logout(token)
    expect(await renew(token)).toMatchObject({ status: 401, body: gone })
  })

  test('a response that has begun is not changed, and other cookies of the response stay', async () => {
    const { send, time, cookie } = await running()
    time.now += DAY
    const begun = await send('GET', '/begun', { cookie })
    expect([begun.status, begun.body, cookiesOf(begun)]).toEqual([200, 'ada', []])
    expect(cookiesOf(await send('GET', '/themed', { cookie }))).toEqual([
      expect.stringMatching(/^theme=dark/),
      expect.stringMatching(/^__Host-onetrip=/),
    ])
  })

  test('a login or logout in the same request has the last word', async () => {
    const { send, store, login, time, cookie } = await running()
    time.now += DAY
    const user = tokenOf(cookiesOf(await send('POST', '/check-and/login', { cookie })).at(-1))
    expect(await store.checkToken(user)).toMatchObject({ user: 'ada' })
    expect(await store.tokenExpiresAt(user)).toBe(time.now + 10 * DAY)
    for (const path of ['/check-and/logout', '/clear-and-check']) {
      const old = await login()
      time.now += DAY
      const answer = await send('POST', path, { cookie: old.cookie })
      expect(cookiesOf(answer).at(-1), path).toMatch(/^__Host-onetrip=; Max-Age=0/)
    }
  })

  test('cookies that end with the browser, unless the login is remembered; a renewal changes neither', async () => {
    const { send, time } = await running({ lifetime: 'browser' })
    const lasts = /Max-Age|Expires/
    for (const [path, expected] of [
      ['/login/ada', expect.not.stringMatching(lasts)],
      ['/guest', expect.not.stringMatching(lasts)],
      ['/login/ada?remember', expect.stringMatching(lasts)],
    ] as const) {
      const [given] = cookiesOf(await send('POST', path))
      expect(given).toEqual(expected)
      time.now += DAY
      const cookie = given?.split(';')[0] ?? ''
      const [renewed] = cookiesOf(await send('GET', '/me', { cookie }))
      expect(renewed).toEqual(expected)
      expect(renewed).not.toContain(cookie)
    }
  })
})
