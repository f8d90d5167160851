import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { InjectOptions } from 'fastify'
import { expect, test } from 'vitest'
import { appForThisTest, bearer, login } from './support.ts'

const server = redisOfThisFile()
const COOKIE = '__Host-onetrip'

interface Sessions {
  nextCursor?: string
  sessions: { id: string; current: boolean; loggedInAt: number; lastSeenAt: number }[]
}

test('sessions are listed and ended one by one, and their ids are not credentials', async () => {
  const app = await appForThisTest(server.socket)
  const [phone, laptop, stranger] = [await login(app), await login(app), await login(app, 'grace')]
  const list = async (token: string) =>
    (await app.inject({ url: '/me/sessions', headers: bearer(token) })).json<Sessions>().sessions
  const sessions = await list(laptop)
  expect(sessions.map(({ id, current }) => [`${id}.`, current])).toEqual([
    [laptop.slice(0, 33), true],
    [phone.slice(0, 33), false],
  ])
  const [, older] = sessions
  const asCredential = await app.inject({ url: '/me', headers: bearer(older?.id ?? '') })
  expect(asCredential.json()).toMatchObject({ statusCode: 401, code: 'ONETRIP_INVALID_TOKEN' })

  const end = (token: string) =>
    app.inject({ method: 'DELETE', url: `/me/sessions/${older?.id}`, headers: bearer(token) })
  expect((await end(stranger)).json()).toMatchObject({ statusCode: 404, code: 'API_NOT_FOUND' })
  const ended = await end(laptop)
  expect([ended.statusCode, ended.body, ended.cookies]).toEqual([204, '', []])
  expect((await end(laptop)).statusCode).toBe(404)
  expect((await app.inject({ url: '/me', headers: bearer(phone) })).statusCode).toBe(401)
  expect(await list(laptop)).toHaveLength(1)
})

test('sessions are listed page by page, and an invalid cursor is rejected', async () => {
  const app = await appForThisTest(server.socket)
  const tokens = [await login(app), await login(app), await login(app)]
  const get = (query: string) =>
    app.inject({ url: `/me/sessions${query}`, headers: bearer(tokens[0] ?? '') })
  const listed: string[] = []
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const page: Sessions = (await get(`?limit=2${cursor && `&cursor=${cursor}`}`)).json<Sessions>()
    listed.push(...page.sessions.map(({ id }) => id))
    cursor = page.nextCursor
  }
  expect(listed).toHaveLength(3)
  expect(listed.toSorted()).toEqual(tokens.map((token) => token.slice(0, 32)).toSorted())
  expect((await get('')).json()).not.toHaveProperty('nextCursor')

  for (const query of ['?cursor=a.b', '?cursor=', `?cursor=${'x'.repeat(201)}`, '?limit=101']) {
    expect((await get(query)).json()).toMatchObject({ statusCode: 400, code: 'API_BAD_REQUEST' })
  }
  const forged = (await get('?cursor=bm8gY3Vyc29y')).json()
  expect(forged).toMatchObject({ statusCode: 400, code: 'ONETRIP_INVALID_INPUT' })
})

test('ending the own session, or all sessions, clears the cookie', async () => {
  const app = await appForThisTest(server.socket)
  const forgotten = [{ name: COOKIE, value: '', maxAge: 0, path: '/', secure: true }]
  const [first, second] = [await login(app), await login(app)]
  const own = await app.inject({
    method: 'DELETE',
    url: `/me/sessions/${first.slice(0, 32)}`,
    cookies: { [COOKIE]: first },
  })
  expect([own.statusCode, own.cookies]).toMatchObject([204, forgotten])
  await login(app)
  const all = await app.inject({
    method: 'DELETE',
    url: '/me/sessions',
    cookies: { [COOKIE]: second },
  })
  expect(all.json()).toEqual({ ended: 2 })
  expect(all.cookies).toMatchObject(forgotten)
})

test('a logout is idempotent: without a session it answers 204, too', async () => {
  const app = await appForThisTest(server.socket)
  const forgotten = [{ name: COOKIE, value: '', maxAge: 0, path: '/', secure: true }]
  const token = await login(app)
  const logout = async (request: InjectOptions) => {
    const { statusCode, cookies } = await app.inject({ method: 'POST', url: '/logout', ...request })
    return [statusCode, cookies]
  }
  expect(await logout({ cookies: { [COOKIE]: token } })).toMatchObject([204, forgotten])
  expect((await app.inject({ url: '/me', headers: bearer(token) })).statusCode).toBe(401)
  expect(await logout({ cookies: { [COOKIE]: token } })).toMatchObject([204, forgotten])
  const stale = { [COOKIE]: `${token.slice(0, -2)}AA` }
  expect(await logout({ cookies: stale })).toMatchObject([204, forgotten])
  expect(await logout({ headers: bearer(token) })).toEqual([204, []])
  expect(await logout({ headers: bearer('x') })).toEqual([204, []])
  expect(await logout({})).toEqual([204, []])
})

test('the cookie has the lifetime of the token, and no __Host- prefix if it is not Secure', async () => {
  const clock = () => Date.now()
  const app = await appForThisTest(server.socket, { secureCookie: false, clock })
  const answer = await app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' } })
  const { expiresAt } = answer.json<{ expiresAt: number }>()
  const [cookie] = answer.cookies
  expect(cookie).toMatchObject({ name: 'onetrip', path: '/', httpOnly: true, sameSite: 'Lax' })
  expect(cookie).not.toHaveProperty('secure')
  expect(cookie).not.toHaveProperty('domain')
  // Max-Age is in whole seconds.
  expect(cookie?.expires?.getTime()).toBe(Math.floor(expiresAt / 1000) * 1000)
  const lifetime = 30 * 24 * 3600
  expect(cookie?.maxAge).toBeGreaterThan(lifetime - 60)
  expect(cookie?.maxAge).toBeLessThanOrEqual(lifetime)
  expect(answer.headers['cache-control']).toBe('no-store')
  const me = await app.inject({ url: '/me', cookies: { onetrip: cookie?.value ?? '' } })
  expect([me.statusCode, me.headers['cache-control']]).toEqual([200, 'no-store'])
})

test('a login never reuses the token of the request, and ends the session of the cookie', async () => {
  const app = await appForThisTest(server.socket)
  const planted = await login(app, 'mallory')
  const kept = await login(app, 'grace')
  const answer = await app.inject({
    method: 'POST',
    url: '/login',
    payload: { user: 'ada' },
    cookies: { [COOKIE]: planted },
    headers: bearer(kept),
  })
  const { token } = answer.json<{ token: string }>()
  expect(token).not.toBe(planted)
  const status = async (token: string) =>
    (await app.inject({ url: '/me', headers: bearer(token) })).statusCode
  expect(await Promise.all([token, planted, kept].map(status))).toEqual([200, 401, 200])
  // An invalid token does not prevent a login.
  const again = await app.inject({
    method: 'POST',
    url: '/login',
    payload: { user: 'ada' },
    cookies: { [COOKIE]: 'x' },
  })
  expect(again.statusCode).toBe(200)
})

test('a request with two session cookies is rejected, and its response removes them', async () => {
  const app = await appForThisTest(server.socket)
  const cookie = `${COOKIE}=${await login(app)}; other=1; ${COOKIE}=${await login(app, 'mallory')}`
  const answer = await app.inject({ url: '/me', headers: { cookie } })
  expect(answer.json()).toMatchObject({ statusCode: 400, code: 'ONETRIP_SEVERAL_COOKIES' })
  expect(answer.cookies).toMatchObject([{ name: COOKIE, value: '', maxAge: 0, path: '/' }])
  const out = await app.inject({ url: '/me', headers: { cookie: `other=1; x${COOKIE}=a; b` } })
  expect(out.json()).toMatchObject({ statusCode: 401, code: 'ONETRIP_LOGIN_REQUIRED' })
  const nameless = { cookie: `${COOKIE}x; ${COOKIE}=${await login(app)}` }
  expect((await app.inject({ url: '/me', headers: nameless })).statusCode).toBe(200)
})

test.each(['/login', '/logout'])(
  '%s works with two session cookies, and ends both sessions',
  async (url) => {
    const app = await appForThisTest(server.socket)
    const tokens = [await login(app), await login(app, 'mallory')]
    const cookie = tokens.map((token) => `${COOKIE}=${token}`).join('; ')
    const payload = { user: 'ada' } // ignored by /logout
    const answer = await app.inject({ method: 'POST', url, headers: { cookie }, payload })
    expect(answer.statusCode).toBeLessThan(300)
    for (const token of tokens) {
      const me = await app.inject({ url: '/me', headers: bearer(token) })
      expect(me.json()).toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
    }
  },
)

test('a 401 does not clear the cookie, which a concurrent login may have replaced', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  await app.store.logout(token)
  const answer = await app.inject({ url: '/me', headers: { cookie: `${COOKIE}=${token}` } })
  expect([answer.statusCode, answer.cookies]).toEqual([401, []])
})

test('GET /me updates the last-seen time at most once in ten seconds', async () => {
  let now = Date.now()
  const app = await appForThisTest(server.socket, { clock: () => now })
  const token = await login(app)
  const lastSeen = async () => {
    await app.inject({ url: '/me', headers: bearer(token) })
    return Number(await server.redis.zscore('recent:', token.slice(0, 32)))
  }
  const loggedIn = now
  now += 9_999
  expect(await lastSeen()).toBe(loggedIn / 1000)
  now += 2
  expect(await lastSeen()).toBe(now / 1000)
})

test('a login with remember: true gets the longer lifetime, and so does its cookie', async () => {
  const app = await appForThisTest(server.socket)
  const answer = await app.inject({
    method: 'POST',
    url: '/login',
    payload: { user: 'ada', remember: true },
  })
  const days = 24 * 3600
  expect(answer.cookies[0]?.maxAge).toBeGreaterThan(89 * days)
  expect(answer.cookies[0]?.maxAge).toBeLessThanOrEqual(90 * days)
  const wrong = {
    method: 'POST',
    url: '/login',
    payload: { user: 'ada', remember: 'yes' },
  } as const
  expect((await app.inject(wrong)).statusCode).toBe(400)
})

const host = 'shop.example:8443'
const same = { origin: `https://${host}` }
const other = { origin: 'https://evil.example' }

test.each<[string, InjectOptions['headers'], number]>([
  ['no browser', {}, 200],
  ['same origin', { ...same, 'sec-fetch-site': 'same-origin' }, 200],
  ['typed by the user', { 'sec-fetch-site': 'none' }, 200],
  ['an old browser, same origin', same, 200],
  ['another site', { ...other, 'sec-fetch-site': 'cross-site' }, 403],
  ['another host of the same site', { ...same, 'sec-fetch-site': 'same-site' }, 403],
  ['an invalid header', { ...same, 'sec-fetch-site': 'same-origin, cross-site' }, 403],
  ['an old browser, another site', other, 403],
  ['another port', { origin: 'https://shop.example' }, 403],
  ['an opaque origin', { origin: 'null' }, 403],
  ['one of PUBLIC_ORIGINS', { origin: 'https://pay.example', 'sec-fetch-site': 'cross-site' }, 200],
])('CSRF protection of state-changing requests, from: %s', async (_who, headers, status) => {
  const app = await appForThisTest(server.socket, { publicOrigins: ['https://Pay.example:443'] })
  const cookie = `${COOKIE}=${await login(app)}`
  const send = async (request: InjectOptions, more: InjectOptions['headers'] = {}) =>
    (await app.inject({ ...request, headers: { host, ...headers, ...more } })).statusCode
  const view = { method: 'POST', url: '/views', payload: { item: 'book' } } as const
  expect(await send(view, { cookie })).toBe(status)
  // A cross-site page cannot set the Authorization header.
  expect(await send(view, bearer(await login(app)))).toBe(200)
  expect(await send({ url: '/me' }, { cookie })).toBe(200)
  expect(await send({ method: 'POST', url: '/login', payload: { user: 'mallory' } })).toBe(status)
  const logout = { method: 'POST', url: '/logout' } as const
  expect(await send(logout, { cookie })).toBe(status === 200 ? 204 : status)
})

test('POST /logout with a lost reply says that a retry is safe', async () => {
  const redis = await redisForThisTest()
  const app = await appForThisTest(redis.socket)
  const token = await login(app)
  redis.program.signal('SIGSTOP')
  const logout = { method: 'POST', url: '/logout', headers: bearer(token) } as const
  const lost = app.inject(logout)
  await expect.poll(() => app.store.info?.inFlight).toBe(1)
  redis.program.signal('SIGKILL')
  expect((await lost).json()).toMatchObject({
    statusCode: 503,
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    retrySafe: true,
  })
})
