import cookie from '@fastify/cookie'
import session from '@fastify/session'
import Fastify, { type FastifyRequest } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { fastifySessionStore } from '../../src/fastify-session.ts'
import { Clock, retentionServer } from '../retention-fixture.ts'

const server = retentionServer()

type Session = session.FastifySessionObject & Record<string, unknown>
const sessionOf = (request: FastifyRequest) => request.session as unknown as Session

async function applicationForThisTest() {
  const store = await server.storeForThisTest(new Clock())
  const adapter = fastifySessionStore(store)
  const app = Fastify()
  onTestFinished(() => app.close())
  await app.register(cookie)
  await app.register(session, {
    secret: 'a-secret-for-tests-a-secret-for-tests',
    cookie: { secure: false, maxAge: 60_000 },
    saveUninitialized: false,
    store: adapter,
  })
  const arrived = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  app.post<{ Body: Record<string, unknown> }>('/set', async (request) => {
    Object.assign(sessionOf(request), request.body)
    return { id: sessionOf(request).sessionId }
  })
  app.post<{ Body: Record<string, unknown> }>('/slow', async (request) => {
    arrived.resolve()
    await go.promise
    Object.assign(sessionOf(request), request.body)
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
  return { adapter, ask, arrived: arrived.promise, release: go.resolve }
}

test('a session is kept, regenerated and destroyed', async () => {
  const { adapter, ask } = await applicationForThisTest()
  const { id } = await ask('/set', { user: 'ada' })
  expect(await ask('/set', { cart: ['book'] })).toEqual({ id })
  expect(await adapter.get(id)).toMatchObject({ user: 'ada', cart: ['book'] })
  const next = await ask('/regenerate')
  expect(next).toMatchObject({ user: 'ada' })
  expect(await adapter.ids()).toEqual([next.id])
  await ask('/destroy')
  expect(await adapter.length()).toBe(0)
})

test('a late save does not bring a destroyed session back', async () => {
  const { adapter, ask, arrived, release } = await applicationForThisTest()
  const { id } = await ask('/set', { user: 'ada' })
  const late = ask('/slow', { cart: ['book'] })
  await arrived
  await ask('/destroy')
  release()
  await late
  expect(await adapter.get(id)).toBe(null)
})

test('of parallel requests, the last save wins for the whole session', async () => {
  const { adapter, ask, arrived, release } = await applicationForThisTest()
  const { id } = await ask('/set', { user: 'ada' })
  const late = ask('/slow', { cart: ['book'] })
  await arrived
  await ask('/set', { theme: 'dark' })
  release()
  await late
  expect(await adapter.get(id)).not.toHaveProperty('theme')
  expect(await adapter.get(id)).toMatchObject({ user: 'ada', cart: ['book'] })
})
