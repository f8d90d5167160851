import { createRequire } from 'node:module'
import cookie from '@fastify/cookie'
import session from '@fastify/session'
import Fastify, { type FastifyRequest } from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { FastifySessionStore } from '../src/fastify.ts'
import { SECRET, sessionServer } from './fixture.ts'

const server = sessionServer()

const DAY_MS = 86_400_000

type Session = session.FastifySessionObject & Record<string, unknown>
const sessionOf = (request: FastifyRequest) => request.session as unknown as Session

const require = createRequire(import.meta.url)

/** The tested versions of Fastify, with those of its plugins. */
const versions: [version: string, Frameworks][] = [
  ['Fastify 5', { Fastify, cookie, session, isNew: true }],
  [
    'Fastify 4',
    {
      Fastify: require('fastify-4'),
      cookie: require('fastify-cookie-9'),
      session: require('fastify-session-10'),
      isNew: false,
    },
  ],
]

interface Frameworks {
  Fastify: typeof Fastify
  cookie: typeof cookie
  session: typeof session
  /** Whether `regenerate` destroys the session that it replaces, and the store sees what a request has loaded. */
  isNew: boolean
}

async function applicationOf({ Fastify, cookie, session }: Frameworks) {
  const adapter = new FastifySessionStore(await server.start())
  const app = Fastify()
  onTestFinished(() => app.close())
  await app.register(cookie)
  await app.register(session, {
    secret: SECRET,
    cookie: { secure: false, maxAge: 60_000 },
    saveUninitialized: false,
    store: adapter,
  })
  app.post<{ Body: Record<string, unknown> }>('/set', async (request) => {
    const { remove, ...fields } = request.body
    Object.assign(sessionOf(request), fields)
    if (remove) delete sessionOf(request)[String(remove)]
    return { id: sessionOf(request).sessionId }
  })
  let waiting = 0
  let together = Promise.withResolvers<void>()
  /** Changes the session when so many requests have loaded theirs. */
  app.post<{ Body: Record<string, unknown> }>('/together', async (request) => {
    const { count, days, ...fields } = request.body
    const { promise, resolve } = together
    if (++waiting === count) {
      together = Promise.withResolvers()
      waiting = 0
      resolve()
    }
    await promise
    Object.assign(sessionOf(request), fields)
    if (days) sessionOf(request).cookie.maxAge = Number(days) * DAY_MS
    return {}
  })
  app.post('/regenerate', async (request) => {
    await sessionOf(request).regenerate(['user'])
    return { id: sessionOf(request).sessionId, user: sessionOf(request).user }
  })
  app.post('/destroy', async (request) => {
    await sessionOf(request).destroy()
    return {}
  })
  let jar = ''
  const ask = async (url: string, payload: object = {}) => {
    const response = await app.inject({ method: 'POST', url, payload, headers: { cookie: jar } })
    expect(response.statusCode).toBe(200)
    const [given] = response.cookies
    if (given) jar = `${given.name}=${encodeURIComponent(given.value)}`
    return response.json()
  }
  return { app, adapter, ask }
}

describe.each(versions)('%s', (_, frameworks) => {
  const applicationForThisTest = () => applicationOf(frameworks)

  test('a session is kept, regenerated and destroyed', async () => {
    const { adapter, ask } = await applicationForThisTest()
    const { id } = await ask('/set', { user: 'ada' })
    expect(await ask('/set', { cart: ['book'] })).toEqual({ id })
    expect(await adapter.get(id)).toMatchObject({ user: 'ada', cart: ['book'] })
    const next = await ask('/regenerate')
    expect(next).toMatchObject({ user: 'ada' })
    expect(await adapter.get(next.id)).toMatchObject({ user: 'ada' })
    expect((await adapter.get(id)) === null).toBe(frameworks.isNew)
    await ask('/destroy')
    expect(await adapter.get(next.id)).toBe(null)
  })

  test('100 parallel requests keep the fields that they changed, and a changed cookie', async () => {
    const { adapter, ask } = await applicationForThisTest()
    const { id } = await ask('/set', { user: 'ada', old: 1 })
    const count = 100
    const changes = Array.from({ length: count }, (_, index) => ({ [`field ${index}`]: index }))
    Object.assign(changes[50] ?? {}, { days: 30 })
    await Promise.all(changes.map((fields) => ask('/together', { count, ...fields })))
    const { cookie, user, old, ...fields } = (await adapter.get(id)) as Record<string, unknown>
    expect([user, old]).toEqual(['ada', 1])
    expect(Object.keys(fields)).toHaveLength(frameworks.isNew ? count : 1)
    if (frameworks.isNew) expect(cookie).toMatchObject({ originalMaxAge: 30 * DAY_MS })
    await ask('/set', { remove: 'old', again: true })
    const last = { cookie: expect.anything(), user, ...fields, again: true }
    expect(await adapter.get(id)).toEqual(last)
  })

  test('if a save fails, the response has its status', async () => {
    const { app } = await applicationForThisTest()
    const payload = { '': 1 }
    const response = await app.inject({ method: 'POST', url: '/set', payload })
    expect(response.statusCode).toBe(400)
    expect(response.cookies).toEqual([])
  })
})
