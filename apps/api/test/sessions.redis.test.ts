import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { expect, test } from 'vitest'
import { trustingAuthenticator } from '../src/authenticator.ts'
import { appForThisTest, bearer, listen, login, view } from './support.ts'

// Cookies, CSRF protection, login and logout are those of @onetrip/session-store/fastify, which tests them.

const server = redisOfThisFile()
const COOKIE = '__Host-onetrip'
const forgotten = [{ name: COOKIE, value: '', maxAge: 0, path: '/', secure: true }]

interface Sessions {
  sessions: { id: string; current: boolean }[]
}

const get = async (app: FastifyInstance, url: string, token: string) =>
  (await app.inject({ url, headers: bearer(token) })).json()

test('sessions are listed and ended one by one, and their ids are not credentials', async () => {
  const app = await appForThisTest(server.socket)
  const [phone, laptop, stranger] = [await login(app), await login(app), await login(app, 'grace')]
  const { sessions }: Sessions = await get(app, '/me/sessions', laptop)
  expect(sessions.map(({ id, current }) => [`${id}.`, current])).toEqual([
    [laptop.slice(0, 33), true],
    [phone.slice(0, 33), false],
  ])
  const id = sessions[1]?.id ?? ''
  expect(await get(app, '/me', id)).toMatchObject({ code: 'ONETRIP_INVALID_TOKEN' })

  const end = (token: string) =>
    app.inject({ method: 'DELETE', url: `/me/sessions/${id}`, headers: bearer(token) })
  expect((await end(stranger)).json()).toMatchObject({ statusCode: 404, code: 'API_NOT_FOUND' })
  const ended = await end(laptop)
  expect([ended.statusCode, ended.body, ended.cookies]).toEqual([204, '', []])
  expect((await end(laptop)).statusCode).toBe(404)
  expect(await get(app, '/me', phone)).toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
})

test('ending the own session, or all sessions, clears the cookie', async () => {
  const app = await appForThisTest(server.socket)
  const end = (path: string, token: string) =>
    app.inject({ method: 'DELETE', url: `/me/sessions${path}`, cookies: { [COOKIE]: token } })
  const [first, second] = [await login(app), await login(app)]
  const own = await end(`/${first.slice(0, 32)}`, first)
  expect([own.statusCode, own.cookies]).toMatchObject([204, forgotten])
  await login(app)
  const others = await end('?others=true', second)
  expect([others.json(), others.cookies]).toEqual([{ ended: 1 }, []])
  await login(app)
  const all = await end('', second)
  expect([all.json(), all.cookies]).toMatchObject([{ ended: 2 }, forgotten])
  expect((await end('?others=perhaps', second)).statusCode).toBe(400)
})

test('a logout is idempotent: without a session it answers 204, too', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  for (const [request, cookies] of [
    [{ cookies: { [COOKIE]: token } }, forgotten],
    [{ cookies: { [COOKIE]: token } }, forgotten],
    [{ headers: bearer('x') }, []],
    [{}, []],
  ] as const) {
    const answer = await app.inject({ method: 'POST', url: '/logout', ...request })
    expect([answer.statusCode, answer.cookies]).toMatchObject([204, cookies])
  }
  expect(await get(app, '/me', token)).toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
})

test('a remembered login over plain HTTP: the cookie lives as long as the token', async () => {
  const app = await appForThisTest(server.socket, { secureCookie: false })
  const payload = { user: 'ada', remember: true }
  const answer = await app.inject({ method: 'POST', url: '/login', payload })
  const [cookie] = answer.cookies
  expect(cookie).toMatchObject({ name: 'onetrip', path: '/', httpOnly: true, sameSite: 'Lax' })
  expect(cookie).not.toHaveProperty('secure')
  const { expiresAt } = answer.json<{ expiresAt: number }>()
  expect(cookie?.expires?.getTime()).toBe(Math.floor(expiresAt / 1000) * 1000)
  expect(Math.abs(Number(cookie?.maxAge) - 90 * 24 * 3600)).toBeLessThan(60)
  const me = await app.inject({ url: '/me', cookies: { onetrip: cookie?.value ?? '' } })
  for (const { statusCode, headers } of [answer, me]) {
    expect([statusCode, headers['cache-control']]).toEqual([200, 'no-store'])
  }
})

test('GET /me updates the last-seen time at most once in ten seconds', async () => {
  let now = Date.now()
  const app = await appForThisTest(server.socket, { clock: () => now })
  const token = await login(app)
  const lastSeen = async () => Number(await server.redis.zscore('recent:', token.slice(0, 32)))
  const loggedIn = now
  now += 9_999
  await get(app, '/me', token)
  expect(await lastSeen()).toBe(loggedIn / 1000)
  now += 2
  await get(app, '/me', token)
  await expect.poll(lastSeen).toBe(now / 1000)
})

test.each<[string, InjectOptions['headers'], number]>([
  ['the same origin', { origin: 'https://shop.example', 'sec-fetch-site': 'same-origin' }, 200],
  ['one of PUBLIC_ORIGINS', { origin: 'https://pay.example', 'sec-fetch-site': 'cross-site' }, 200],
  ['another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }, 403],
])('CSRF protection of state-changing requests, from %s', async (_who, headers, status) => {
  const app = await appForThisTest(server.socket, { publicOrigins: ['https://Pay.example:443'] })
  const cookie = `${COOKIE}=${await login(app)}`
  const send = async (request: InjectOptions, more: InjectOptions['headers'] = {}) =>
    (await app.inject({ ...request, headers: { host: 'shop.example', ...headers, ...more } }))
      .statusCode
  const post = { method: 'POST', url: '/views', payload: { item: 'book' } } as const
  expect(await send(post, { cookie })).toBe(status)
  // A cross-site page cannot set the Authorization header.
  expect(await send(post, bearer(await login(app)))).toBe(200)
  expect(await send({ url: '/me' }, { cookie })).toBe(200)
  expect(await send({ method: 'POST', url: '/login', payload: { user: 'mallory' } })).toBe(status)
  const logout = { method: 'POST', url: '/logout' } as const
  expect(await send(logout, { cookie })).toBe(status === 200 ? 204 : status)
})

test('POST /views with an Idempotency-Key counts once', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  const send = async (key: string) => {
    const headers = { ...bearer(token), 'idempotency-key': key }
    const payload = { item: 'book' }
    return (await app.inject({ method: 'POST', url: '/views', headers, payload })).json()
  }
  expect(await send('one')).toMatchObject({ views: 1 })
  expect(await send('one')).toMatchObject({ views: 1 })
  expect(await send('two')).toMatchObject({ views: 2 })
  const long = await send('x'.repeat(256))
  expect(long).toMatchObject({ statusCode: 400, code: 'ONETRIP_INVALID_INPUT' })
})

test('responses for a guest session have user null', async () => {
  const app = await appForThisTest(server.socket)
  const { token } = await app.store.loginGuest()
  expect(await get(app, '/me', token)).toMatchObject({ user: null })
  expect(await get(app, '/me/sessions', token)).toEqual({ sessions: [] })
  expect(await get(app, '/recent', token)).toMatchObject({ sessions: [{ user: null }] })
  expect((await view(app, token)).json()).toMatchObject({ user: null, item: 'book' })
})

test('a login takes over the views of a guest session', async () => {
  const app = await appForThisTest(server.socket)
  const start = (cookies = {}) => app.inject({ method: 'POST', url: '/guest', cookies })
  const started = await start()
  const { token, ...guest } = started.json()
  expect(guest).toEqual({ user: null, expiresAt: expect.any(Number) })
  expect(started.cookies).toMatchObject([{ name: COOKIE, value: token }])
  await view(app, token, 'lamp')
  const cookies = { [COOKIE]: token }
  expect((await start(cookies)).json()).toEqual({ user: null }) // the same session

  const payload = { user: 'ada' }
  const answer = await app.inject({ method: 'POST', url: '/login', payload, cookies })
  const own = answer.json().token
  expect(await get(app, '/me/views', own)).toMatchObject({ items: [{ item: 'lamp' }] })
  expect(await get(app, '/me', token)).toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
  expect((await start({ [COOKIE]: own })).json()).toEqual({ user: 'ada' })
  const headers = { 'sec-fetch-site': 'cross-site' }
  expect((await app.inject({ method: 'POST', url: '/guest', headers })).statusCode).toBe(403)
})

test('without guests and label in the authenticator, there are none', async () => {
  const { guests, label, ...authenticator } = trustingAuthenticator('test')
  const app = await appForThisTest(server.socket, { authenticator })
  expect((await app.inject({ method: 'POST', url: '/guest' })).statusCode).toBe(404)
  const { sessions } = await get(app, '/me/sessions', await login(app, 'plain'))
  expect(sessions[0]).not.toHaveProperty('label')
})

test('sessions have a label from the User-Agent, and no User-Agent makes a login fail', async () => {
  const app = await appForThisTest(server.socket)
  const url = `http://127.0.0.1:${await listen(app)}/login`
  const logIn = (userAgent: string) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': userAgent },
      body: '{"user":"labelled"}',
    })
  const utf8 = Buffer.from('Bröwser „x“').toString('latin1')
  for (const userAgent of ['curl/8.5.0', '\u0080', utf8, 'a\tb', 'x'.repeat(8_000)]) {
    expect((await logIn(userAgent)).status).toBe(200)
  }
  const token = await login(app, 'labelled')
  const { sessions } = await get(app, '/me/sessions', token)
  const labels = sessions.map(({ label }: { label?: string }) => label)
  expect(labels).toEqual(['lightMyRequest', 'x'.repeat(40), 'a', 'Br', undefined, 'curl'])
})
