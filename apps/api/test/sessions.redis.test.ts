import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
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

test('pages of PUBLIC_ORIGINS may change state with the cookie, others may not', async () => {
  const app = await appForThisTest(server.socket, { publicOrigins: ['https://Pay.example:443'] })
  const cookies = { [COOKIE]: await login(app) }
  const from = async (origin: string) => {
    const headers = { origin, 'sec-fetch-site': 'cross-site' }
    return (await app.inject({ method: 'POST', url: '/logout', headers, cookies })).statusCode
  }
  expect(await from('https://evil.example')).toBe(403)
  expect(await from('https://pay.example')).toBe(204)
})

test('POST /views with an Idempotency-Key counts once', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  const answers = []
  for (const key of ['one', 'one', 'two', 'x'.repeat(256)]) {
    const headers = { ...bearer(token), 'idempotency-key': key }
    const payload = { item: 'book' }
    answers.push((await app.inject({ method: 'POST', url: '/views', headers, payload })).json())
  }
  const tooLong = { statusCode: 400, code: 'ONETRIP_INVALID_INPUT' }
  expect(answers).toMatchObject([{ views: 1 }, { views: 1 }, { views: 2 }, tooLong])
})

test('a login takes over the views of a guest session', async () => {
  const app = await appForThisTest(server.socket)
  const start = (cookies = {}) => app.inject({ method: 'POST', url: '/guest', cookies })
  const started = await start()
  const { token, ...guest } = started.json()
  expect(guest).toEqual({ user: null, expiresAt: expect.any(Number) })
  expect(started.cookies).toMatchObject([{ name: COOKIE, value: token }])
  expect((await view(app, token, 'lamp')).json()).toMatchObject({ user: null, item: 'lamp' })
  expect(await get(app, '/me', token)).toMatchObject({ user: null })
  expect(await get(app, '/me/sessions', token)).toEqual({ sessions: [] })
  expect(await get(app, '/recent', token)).toMatchObject({ sessions: [{ user: null }] })
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

test('by default, an authenticator has no guests and no labels', async () => {
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
