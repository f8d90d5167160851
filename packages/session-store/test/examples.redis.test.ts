import { createHmac } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { RedisStore } from 'connect-redis'
import session from 'express-session'
import Fastify from 'fastify'
import { createClient } from 'redis'
import { expect, onTestFinished, test } from 'vitest'
import { fastifySessionStore } from '../src/adapters/fastify-session.ts'
import { programsIn, startExample, startText } from './example.ts'
import { readyStore, SECRET } from './fixture.ts'

const server = redisOfThisFile()

test.each(['fastify.ts', 'express.ts', 'node-http.ts'])(
  '%s: password check, cookie, views, logout',
  async (file) => {
    const { cookies, send, stop } = await startExample(file, server.socket)
    const crossSite = { origin: 'https://evil.example' }
    const credentials = { user: 'ada', password: 'lovelace' }
    const notLoggedIn = { status: 401, body: { code: 'ONETRIP_LOGIN_REQUIRED' } }
    expect(await send('GET', '/me')).toMatchObject(notLoggedIn)
    expect(await send('POST', '/login', crossSite, credentials)).toMatchObject({ status: 403 })
    if (file !== 'node-http.ts') {
      for (const wrong of [{ user: 'eve' }, { password: 'wrong' }]) {
        const answer = await send('POST', '/login', {}, { ...credentials, ...wrong })
        expect(answer.status).toBe(401)
      }
    }
    expect(cookies.size).toBe(0)

    const loggedIn = await send('POST', '/login', {}, credentials)
    expect(loggedIn).toMatchObject({ status: 200, body: { user: 'ada' } })
    expect([...cookies.keys()]).toEqual(['__Host-onetrip'])
    expect((await send('POST', '/views/book')).body).toEqual({ user: 'ada', views: 1 })
    expect(await send('POST', '/views/book', crossSite)).toMatchObject({ status: 403 })
    expect((await send('GET', '/me')).body).toMatchObject({ user: 'ada' })
    const token = cookies.get('__Host-onetrip')
    expect((await send('POST', '/logout')).body).toEqual({ ended: true })
    expect(cookies.size).toBe(0)
    const ended = await send('GET', '/me', { cookie: `__Host-onetrip=${token}` })
    expect(ended).toMatchObject({ status: 401, body: { code: 'ONETRIP_UNKNOWN_SESSION' } })
    await stop()
  },
)

test.each(['express-session.ts', 'fastify-session.ts'])('%s: data of a session', async (file) => {
  const { send, stop } = await startExample(file, server.socket)
  for (const [method, path, theme] of [
    ['GET', '/theme', null],
    ['POST', '/theme/dark', 'dark'],
    ['GET', '/theme', 'dark'],
  ] as const) {
    expect(await send(method, path)).toEqual({ status: 200, body: { theme } })
  }
  await stop()
})

/** Both show step 2 of the migration. */
const [express = '', fastify = ''] = programsIn('docs/migrating.md')

const me = { status: 200, body: { user: 'ada', data: { fields: { cart: ['book'] } } } }

test('docs/migrating.md: the program for Fastify moves a session of @fastify/session to a token', async () => {
  // Step 1 of the migration.
  const app = Fastify()
  onTestFinished(() => app.close())
  const store = await readyStore({ url: `unix://${server.socket}` })
  await app.register(fastifyCookie)
  await app.register(fastifySession, {
    store: fastifySessionStore(store),
    secret: SECRET,
    cookie: { secure: false },
  })
  app.get('/login', async ({ session }) => {
    Object.assign(session, { user: 'ada', cart: ['book'] })
  })
  const [old] = (await app.inject('/login')).cookies

  const { cookies, send, stop } = await startText(fastify, server.socket)
  expect((await send('GET', '/me')).status).toBe(401)
  const cookie = `${old?.name}=${encodeURIComponent(old?.value ?? '')}`
  for (const headers of [{ cookie }, {}]) {
    expect(await send('GET', '/me', headers)).toMatchObject(me)
    expect([...cookies.keys()]).toEqual(['__Host-onetrip'])
  }
  expect((await send('GET', '/me', { cookie })).status).toBe(401) // the old session has ended
  expect((await send('POST', '/logout')).body).toEqual({ ended: true })
  await stop()
})

test('docs/migrating.md: the program for Express moves a session of connect-redis to a token', async () => {
  const client = createClient({ socket: { path: server.socket, tls: false } })
  await client.connect()
  onTestFinished(() => client.destroy())
  const old = new RedisStore({ client })
  const data = { cookie: new session.Cookie(), user: 'ada', cart: ['book'] }
  for (const id of ['one', 'two', 'three']) await old.set(id, data)

  /** Signs a cookie as express-session does. */
  const sign = (id: string) =>
    `${id}.${createHmac('sha256', SECRET).update(id).digest('base64').replace(/=+$/, '')}`

  type Example = Awaited<ReturnType<typeof startExample>>
  const checkMove = async ({ cookies, send }: Example, id: string) => {
    cookies.clear()
    cookies.set('connect.sid', encodeURIComponent(`s:${sign(id)}`))
    for (const _ of [1, 2]) {
      expect(await send('GET', '/me')).toMatchObject(me)
      expect([...cookies.keys()]).toEqual([expect.stringContaining('onetrip')])
    }
    expect(await old.get(id)).toBe(null)
  }
  const deployed = await startText(express, server.socket)
  await checkMove(deployed, 'one')
  await old.set('late', data) // by a process of the previous version
  await checkMove(deployed, 'late')

  const importing = await startText(express, server.socket, 'import')
  expect(importing.lines).toContain('{ imported: 2, existing: 0, skipped: {} }')
  await checkMove(importing, 'two')
  for (const { stop } of [deployed, importing]) await stop()
})
