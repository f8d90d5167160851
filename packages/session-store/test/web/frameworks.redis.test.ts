import { redisForThisTest, redisOfThisFile, type TestRedis } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { roundTripChannel } from '../../src/index.ts'
import { gone, messagesOf, tokens } from '../fixture.ts'
import { appForThisTest, frameworks, late, type Options } from './framework-apps.ts'

const server = redisOfThisFile()

const storeOptions = (redis: { socket: string } = server) => ({
  redis: `unix://${redis.socket}`,
  tokens,
  janitor: 'elsewhere' as const,
  deadlineMs: 30_000,
})

describe.each(Object.entries(frameworks))('%s', (name, start) => {
  const running = (options: Partial<Options> = {}, redis?: TestRedis) =>
    appForThisTest(start, { ...storeOptions(redis), ...options } as Options)

  test('a login has a new token, ends the session of the cookie, and takes effect in the same request', async () => {
    const { send, login, store } = await running()
    const first = await login()
    const answer = await send('POST', '/login/ada', { cookie: first.cookie })
    expect(answer.body).toEqual({ user: 'ada', views: 2 })
    const second = answer.headers.getSetCookie()[0]?.split(/[=;]/)[1] ?? ''
    expect(second).not.toBe(first.token)
    await expect(store.checkToken(first.token)).rejects.toMatchObject(gone)
    expect(await store.checkToken(second)).toMatchObject({ user: 'ada' })
  })

  test('the cookie of a remembered login lives as long as its token', async () => {
    const lifetimes = { lifetimeSeconds: 600, rememberedLifetimeSeconds: 1200 }
    const { send } = await running({ tokens: { ...tokens, ...lifetimes } } as Partial<Options>)
    const maxAge = async (path: string) =>
      Number(/Max-Age=(\d+)/.exec((await send('POST', path)).headers.getSetCookie()[0] ?? '')?.[1])
    expect(await maxAge('/login/ada')).toBeLessThanOrEqual(600)
    expect(await maxAge('/login/ada?remember')).toBeGreaterThan(600)
  })

  test('a guest who logs in keeps views and data, with a new token', async () => {
    const { send } = await running()
    const cookieOf = ({ headers }: { headers: Headers }) => ({
      cookie: headers.getSetCookie()[0]?.split(';')[0] ?? '',
    })
    const guest = cookieOf(await send('POST', '/guest'))
    expect((await send('POST', '/views/book', guest)).body).toEqual({ user: null, views: 1 })
    expect((await send('POST', '/data/dark', guest)).body).toEqual({ version: 1 })
    const user = cookieOf(await send('POST', '/login/ada', guest))
    expect(user).not.toEqual(guest)
    expect((await send('GET', '/me', guest)).status).toBe(401)
    expect((await send('POST', '/me', user)).body).toMatchObject({ user: 'ada' })
    const data = { fields: { theme: 'dark' } }
    expect((await send('GET', '/data', user)).body).toMatchObject(data)
    expect((await send('GET', '/me', user)).body).toMatchObject({ user: 'ada', data })
    expect((await send('GET', '/viewed', user)).body.items).toMatchObject([
      { item: 'welcome' },
      { item: 'book' },
    ])
  })

  test('a guest with a bearer token keeps its data, unless bearer is false', async () => {
    const { send, store } = await running()
    const loginWith = async (login: typeof send, token: string) => {
      const { headers } = await login('POST', '/login/ada', { authorization: `Bearer ${token}` })
      return headers.getSetCookie()[0]?.split(/[=;]/)[1] ?? ''
    }
    const { token: guest } = await store.loginGuest()
    await store.patch(guest, { theme: 'dark' })
    const user = await loginWith(send, guest)
    expect(await store.data(user)).toMatchObject({ fields: { theme: 'dark' } })
    await expect(store.data(guest)).rejects.toMatchObject(gone)

    const cookieOnly = await running({ bearer: false })
    const { token: other } = await store.loginGuest()
    await loginWith(cookieOnly.send, other)
    expect(await store.checkToken(other)).toMatchObject({ user: null })
  })

  test('a view is one round trip, and a rejected request sends nothing', async () => {
    const { send, login } = await running()
    const { cookie, token } = await login()
    const roundTrips = messagesOf(roundTripChannel)
    expect((await send('POST', '/views/book', { cookie })).status).toBe(200)
    expect(roundTrips).toHaveLength(1)
    const refused = [
      {},
      { cookie: '__Host-onetrip=' },
      { cookie: 'onetrip=a' },
      { cookie, 'sec-fetch-site': 'cross-site' },
      { cookie: `${cookie}; ${cookie}` },
      { authorization: `Basic ${token}` },
      { authorization: 'Bearer forged', cookie },
    ]
    const answers = await Promise.all(refused.map((headers) => send('POST', '/views/a', headers)))
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 403, 400, 401, 401])
    expect(roundTrips).toHaveLength(1)
  })

  test('cross-site requests with a bearer token are allowed, unless bearer is false', async () => {
    const both = await running()
    const { token } = await both.login()
    const headers = { authorization: `bearer  ${token}`, 'sec-fetch-site': 'cross-site' }
    expect((await both.send('POST', '/views/book', headers)).status).toBe(200)
    const cookieOnly = await running({ bearer: false })
    const { status, body } = await cookieOnly.send('POST', '/views/book', headers)
    expect({ status, code: body.code }).toEqual({ status: 401, code: 'ONETRIP_LOGIN_REQUIRED' })
  })

  test('pages of publicOrigins may change state', async () => {
    const { send, login } = await running({ publicOrigins: ['https://shop.example'] })
    const { cookie } = await login()
    const from = (origin: string) =>
      send('POST', '/views/book', { cookie, origin, 'sec-fetch-site': 'cross-site' })
    expect((await from('https://shop.example')).status).toBe(200)
    expect((await from('https://evil.example')).status).toBe(403)
    const fromEvil = await send('POST', '/login/ada', { origin: 'https://evil.example' })
    expect(fromEvil).toMatchObject({ status: 403, body: { code: 'ONETRIP_CROSS_SITE' } })
    expect(fromEvil.headers.getSetCookie()).toEqual([])
  })

  test('without Redis: 503 with retrySafe and mayHaveWritten, and without the cause', async () => {
    const redis = await redisForThisTest()
    const { send, login } = await running({}, redis)
    const { cookie } = await login()
    redis.program.signal('SIGKILL')
    await redis.program.exited
    const { status, headers, body } = await send('POST', '/views/book', { cookie })
    expect(status).toBe(503)
    expect(headers.get('retry-after')).toBe('1')
    expect(headers.getSetCookie()).toEqual([])
    expect(body).toEqual({
      statusCode: 503,
      code: expect.stringMatching(/^ONETRIP_(?:NOT_SENT|OUTCOME_UNKNOWN)$/),
      error: 'Service Unavailable',
      message: expect.stringMatching(/^no connection to Redis$|^sent to Redis/),
      mayHaveWritten: expect.any(Boolean),
      retrySafe: expect.any(Boolean),
    })
  })

  const ways = name === 'fastify' ? ['sent', 'begun', 'hijacked'] : ['sent', 'begun']
  const calls = ['login', 'logout']
  test.each(calls.flatMap((call) => ways.map((how) => [call, how])))(
    '%s fails and sends nothing to Redis if the response is %s',
    async (call, how) => {
      const { send, login, store } = await running()
      const { cookie, token } = await login()
      late.length = 0
      const roundTrips = messagesOf(roundTripChannel)
      await send('POST', `/late/${call}/${how}`, { cookie })
      await expect.poll(() => late.length).toBe(1)
      expect(late[0]).toMatchObject({
        message: expect.stringContaining('can no longer set the session cookie'),
      })
      expect(roundTrips).toHaveLength(0)
      expect(await store.checkToken(token)).toMatchObject({ user: 'ada' })
    },
  )

  test('a login fails and leaves no session if the response is sent meanwhile', async () => {
    const { send } = await running()
    late.length = 0
    await send('POST', '/late/login/sent meanwhile')
    await expect.poll(() => late.length).toBe(1)
    expect(late[0]).toBeInstanceOf(Error)
    expect(await server.redis.hlen('login:')).toBe(0)
  })

  test.each([
    ['GET', '/broken', 'broken'],
    ['POST', '/mistaken', 'must be a string'], // a wrong type is a bug of the application
  ])('errors of the application are passed on: %s %s', async (method, path, message) => {
    const { send } = await running()
    const { status, headers, body } = await send(method, path)
    expect(status).toBe(500)
    expect(headers.get('content-type')).toContain(name === 'fastify' ? 'json' : 'html')
    expect(JSON.stringify(body)).toContain(message)
    expect(JSON.stringify(body)).not.toContain('retrySafe')
  })
})
