import { fileURLToPath } from 'node:url'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import { startProgram } from '@onetrip/stack/program.ts'
import { redisForThisTest, type TestRedis } from '@onetrip/stack/testing/redis.ts'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { fastifySessionStore } from '../../src/adapters/fastify-session.ts'
import { createSessionStore } from '../../src/core/index.ts'

const SECRET = 'a-secret-for-tests-a-secret-for-tests'

/** Starts an example as a process, and sends requests as curl does. */
async function example(file: string, name: string, redis?: TestRedis) {
  const { socket } = redis ?? (await redisForThisTest())
  const program = await startProgram({
    name,
    command: process.execPath,
    args: [fileURLToPath(new URL(`../../examples/${file}`, import.meta.url))],
    env: {
      ...process.env,
      NODE_ENV: 'production',
      PORT: '0',
      REDIS_URL: `unix://${socket}`,
      SESSION_SECRET: SECRET,
    },
    ready: /127\.0\.0\.1|port: \d+/,
    readyTimeoutMs: 100_000,
  })
  onTestFinished(() => program.stop().then(() => undefined))
  const port = /(?:127\.0\.0\.1:|port: )(\d+)/.exec(program.lastLines.join('\n'))?.[1]
  const send = async (method: string, path: string, headers = {}, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const cookie = response.headers.getSetCookie()
    return {
      status: response.status,
      headers: response.headers,
      cookie,
      body: await response.json(),
    }
  }
  return { program, send }
}

test.each([
  ['fastify.ts', 'Fastify'],
  ['express.ts', 'Express'],
])('examples/%s: password check, cookie, views, logout', async (file, name) => {
  const { program, send } = await example(file, name)
  const login = (user: string, password: string, headers = {}) =>
    send('POST', '/login', headers, { user, password })

  expect(await login('ada', 'wrong')).toMatchObject({ status: 401, cookie: [] })
  expect(await login('eve', 'lovelace')).toMatchObject({ status: 401, cookie: [] })
  expect(await send('POST', '/login', {}, {})).toMatchObject({ cookie: [] })
  expect(await send('POST', '/views/book')).toMatchObject({
    status: 401,
    body: { code: 'ONETRIP_LOGIN_REQUIRED' },
  })
  const crossSite = { origin: 'https://evil.example' }
  expect(await login('ada', 'lovelace', crossSite)).toMatchObject({ status: 403, cookie: [] })

  const loggedIn = await login('ada', 'lovelace')
  expect(loggedIn).toMatchObject({ status: 200, body: { user: 'ada' } })
  const [setCookie = ''] = loggedIn.cookie
  expect(setCookie).toMatch(
    /^__Host-onetrip=[^;]+; Max-Age=\d+; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/,
  )
  const cookie = { cookie: setCookie.split(';')[0] }

  const view = (headers = {}) => send('POST', '/views/book', { ...cookie, ...headers })
  expect((await view()).body).toEqual({ user: 'ada', views: 1 })
  const token = cookie.cookie?.split('=')[1]
  expect((await send('POST', '/views/book', { authorization: `Bearer ${token}` })).body).toEqual({
    user: 'ada',
    views: 2,
  })
  expect(await view(crossSite)).toMatchObject({
    status: 403,
    body: { statusCode: 403, code: 'ONETRIP_CROSS_SITE', error: 'Forbidden' },
  })
  expect((await send('GET', '/me', cookie)).body).toMatchObject({ user: 'ada' })

  expect(await send('POST', '/logout', cookie)).toMatchObject({
    status: 200,
    body: { ended: true },
    cookie: [expect.stringMatching(/^__Host-onetrip=; Max-Age=0/)],
  })
  const ended = await view()
  expect(ended).toMatchObject({
    status: 401,
    body: { code: 'ONETRIP_UNKNOWN_SESSION' },
    cookie: [],
  })
  expect(ended.headers.get('www-authenticate')).toBe('Bearer')

  expect(await program.stop()).toEqual({ code: 0, signal: null })
})

test('examples/node-http.ts: cookie, views, logout', async () => {
  const { program, send } = await example('node-http.ts', 'node:http')
  expect(await send('GET', '/nowhere')).toMatchObject({ status: 404 })
  const denied = await send('GET', '/me')
  expect(denied).toMatchObject({ status: 401, body: { code: 'ONETRIP_LOGIN_REQUIRED' } })
  const crossSite = { origin: 'https://evil.example' }
  expect(await send('POST', '/login', crossSite)).toMatchObject({ status: 403, cookie: [] })

  const login = await send('POST', '/login')
  expect(login).toMatchObject({ status: 200, body: { user: 'ada' } })
  const cookie = { cookie: login.cookie[0]?.split(';')[0] }
  expect((await send('POST', '/views/book', cookie)).body).toEqual({ user: 'ada', views: 1 })
  expect((await send('GET', '/me', cookie)).body).toMatchObject({ user: 'ada' })
  expect(await send('POST', '/logout', cookie)).toMatchObject({
    body: { ended: true },
    cookie: [expect.stringMatching(/^__Host-onetrip=; Max-Age=0/)],
  })
  expect(await send('GET', '/me', cookie)).toMatchObject({
    status: 401,
    body: { code: 'ONETRIP_UNKNOWN_SESSION' },
  })
  expect(await program.stop()).toEqual({ code: 0, signal: null })
})

/** The cookie of a session of @fastify/session with our store: step 1 of the migration. */
async function oldCookie(socket: string): Promise<string> {
  const store = createSessionStore({ url: `unix://${socket}`, tokens: { secrets: [SECRET] } })
  await store.ready()
  const app = Fastify()
  onTestFinished(() => app.close())
  app.addHook('onClose', () => store.close())
  await app.register(fastifyCookie)
  await app.register(fastifySession, {
    store: fastifySessionStore(store),
    secret: SECRET,
    cookie: { secure: false },
  })
  app.get('/login', async ({ session }) => {
    Object.assign(session, { user: 'ada', cart: ['book'] })
  })
  const [cookie] = (await app.inject('/login')).cookies
  return `${cookie?.name}=${encodeURIComponent(cookie?.value ?? '')}`
}

test('examples/migrate-fastify.ts moves a session of @fastify/session to a token', async () => {
  const redis = await redisForThisTest()
  const { program, send } = await example('migrate-fastify.ts', 'Fastify', redis)
  expect(await send('GET', '/me')).toMatchObject({ status: 401, cookie: [] })

  const old = { cookie: await oldCookie(redis.socket) }
  const moved = await send('GET', '/me', old)
  const data = { fields: { cart: ['book'] }, version: 1 }
  expect(moved).toMatchObject({ status: 200, body: { user: 'ada', data } })
  const cookies = moved.cookie.map((cookie) => cookie.split(';')[0] ?? '')
  expect(cookies).toEqual([expect.stringMatching(/^__Host-onetrip=./), 'sessionId='])
  expect(await send('GET', '/me', { cookie: cookies[0] })).toMatchObject({
    status: 200,
    body: { user: 'ada', data },
    cookie: [],
  })
  expect((await send('GET', '/me', old)).status).toBe(401) // the old session has ended
  expect(await send('POST', '/logout', { cookie: cookies[0] })).toMatchObject({
    body: { ended: true },
  })
  expect(await program.stop()).toEqual({ code: 0, signal: null })
})
