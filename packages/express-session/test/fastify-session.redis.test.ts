import { createRequire } from 'node:module'
import cookie from '@fastify/cookie'
import session from '@fastify/session'
import Fastify, { type FastifyRequest } from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { FastifySessionStore } from '../src/fastify.ts'
import { SECRET, sessionServer } from './fixture.ts'

const server = sessionServer()

type Session = session.FastifySessionObject & Record<string, unknown>
const sessionOf = (request: FastifyRequest) => request.session as unknown as Session

const require = createRequire(import.meta.url)

/** The tested versions of Fastify, with those of its plugins. */
const versions: [version: string, Frameworks][] = [
  ['Fastify 5', { Fastify, cookie, session, regenerateDestroys: true }],
  [
    'Fastify 4',
    {
      Fastify: require('fastify-4'),
      cookie: require('fastify-cookie-9'),
      session: require('fastify-session-10'),
      regenerateDestroys: false,
    },
  ],
]

interface Frameworks {
  Fastify: typeof Fastify
  cookie: typeof cookie
  session: typeof session
  /** Whether `regenerate` destroys the session that it replaces. */
  regenerateDestroys: boolean
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
    Object.assign(sessionOf(request), request.body)
    return { id: sessionOf(request).sessionId }
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
    expect((await adapter.get(id)) === null).toBe(frameworks.regenerateDestroys)
    await ask('/destroy')
    expect(await adapter.get(next.id)).toBe(null)
  })

  test('if a save fails, the response has its status', async () => {
    const { app } = await applicationForThisTest()
    const payload = { '': 1 }
    const response = await app.inject({ method: 'POST', url: '/set', payload })
    expect(response.statusCode).toBe(400)
    expect(response.cookies).toEqual([])
  })
})
