import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import Fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createSessionStore, type SessionStore } from '../../src/core/index.ts'
import { expressSessions } from '../../src/web/express.ts'
import { fastifySessions, type RequestSession } from '../../src/web/fastify.ts'
import { frameworks, type Options } from './framework-apps.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

const storeOptions = () => ({
  url: `unix://${server.socket}`,
  tokens,
  janitor: 'elsewhere' as const,
  deadlineMs: 30_000,
})

describe.each(Object.entries(frameworks))('%s', (_, start) => {
  test('does not close a store that was passed in, but closes its own', async () => {
    const given = createSessionStore(storeOptions())
    onTestFinished(() => given.close())
    await given.ready()
    const app = await start({ store: given })
    expect(app.store).toBe(given)
    await app.close()
    await given.ping()

    const own = await start(storeOptions())
    await own.close()
    await expect(own.store.ping()).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  })

  test.each([
    [{ store: undefined as never, tokens: { secrets: [] } }, 'secrets'],
    [{ tokens: false }, 'tokens: false'],
    [{ cookie: { sameSite: 'none', secure: false } }, 'sameSite'],
    [{ publicOrigins: ['shop.example'] }, 'publicOrigins'],
    [{ bearer: 'no' }, 'bearer'],
    [{ store: {} }, 'without effect'],
    [{ publicOrigin: ['https://shop.example'] }, 'the sessions plugin has no option publicOrigin'],
    [{ idleSecond: 60 }, 'the sessions plugin has no option idleSecond'],
    [{ cookie: { maxAge: 60 } }, 'cookie has no option maxAge'],
    [{ publicOrigins: 'https://shop.example' }, 'publicOrigins must be a list of origins such as'],
    [{ publicOrigins: [5] }, 'publicOrigins must be a list of origins such as'],
    [{ publicOrigins: null }, 'publicOrigins must be a list of origins such as'],
    [{ bearer: null }, 'bearer must be true or false'],
    [{ readyTimeoutMs: '8000' }, 'readyTimeoutMs must be a number from 0 to'],
    [{ readyTimeoutMs: -1 }, 'readyTimeoutMs must be a number from 0 to'],
    [{ cookie: 'sid' }, 'the options of cookie must be an object'],
    [{ cookie: null }, 'the options of cookie must be an object'],
    [{ cookie: { name: 5 } }, 'cookie.name must be a string'],
    [{ cookie: { path: 5 } }, 'cookie.path must be a string'],
    [{ cookie: { domain: 5 } }, 'cookie.domain must be a string'],
    [{ cookie: { secure: null } }, 'cookie.secure must be true or false'],
    [{ cookie: { sameSite: true } }, 'cookie.sameSite must be one of'],
    [{ cookie: { previous: [{ path: 5 }] } }, 'cookie.previous.path must be a string'],
    [{ cookie: { previous: 'shop.example' } }, 'cookie.previous must be a list of'],
  ])('%o does not start', async (options, words) => {
    const starting = start({ ...storeOptions(), ...options } as Options)
    await expect(starting).rejects.toThrow(TypeError)
    await expect(starting).rejects.toThrow(words)
  })

  test.each([{ login() {} }, null, 5, 'redis://127.0.0.1'])(
    'store: %o is not a store, and does not start',
    async (store) => {
      const starting = start({ store } as unknown as Options)
      await expect(starting).rejects.toThrow(/store needs the functions .*checkToken/)
    },
  )

  test('a store without tokens does not start', async () => {
    const given = createSessionStore({ ...storeOptions(), tokens: false })
    onTestFinished(() => given.close())
    await expect(start({ store: given })).rejects.toThrow(TypeError)
    await expect(start({ store: given })).rejects.toThrow('tokens: false')
    await given.ready()
  })

  test('without Redis it does not start, and closes its store', async () => {
    let closed = false
    const sender = {
      name: 'silent',
      send: () => new Promise<never>(() => {}),
      close: async () => {
        closed = true
      },
    }
    const starting = start({ sender, tokens, janitor: 'elsewhere', readyTimeoutMs: 1 })
    await expect(starting).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
    expect(closed).toBe(true)
  })
})

test('fastify: an error if registered twice, or if a name is taken', async () => {
  const app = Fastify()
  onTestFinished(() => app.close())
  await app.register(fastifySessions, storeOptions())
  await expect(app.register(fastifySessions, storeOptions())).rejects.toThrow('registered twice')
  const withSession = Fastify().decorateRequest('session', null as never)
  await expect(withSession.register(fastifySessions, storeOptions())).rejects.toThrow(
    'request.session already exists, such as that of @fastify/session: choose another name with decorators.session',
  )
  const withStore = Fastify().decorate('store', null as never)
  await expect(withStore.register(fastifySessions, storeOptions())).rejects.toThrow(
    'app.store already exists: choose another name with decorators.store',
  )
})

test('fastify: other names work beside decorators of the application', async () => {
  const app = Fastify()
    .decorate('store', 'its own store' as never)
    .decorateRequest('session', 'its own session' as never)
  onTestFinished(() => app.close())
  const decorators = { session: 'onetrip', store: 'sessions' }
  await app.register(fastifySessions, { ...storeOptions(), decorators })
  app.get('/', async (request, reply) => {
    await reply.login('ada')
    const { onetrip, session } = request as unknown as Record<string, RequestSession>
    return { found: await onetrip?.find(), session }
  })
  expect((await app.inject('/')).json()).toMatchObject({
    found: { user: 'ada' },
    session: 'its own session',
  })
  expect(app.store).toBe('its own store')
  const { sessions } = app as unknown as Record<string, SessionStore>
  expect(await sessions?.recentSessions()).toMatchObject([{ user: 'ada' }])
})

test.each([
  [5, 'the options of decorators must be an object'],
  [{ session: 5 }, 'decorators.session must be a name'],
  [{ store: '' }, 'decorators.store must be a name'],
  [{ stores: 'x' }, 'decorators has no option stores: its options are session, store'],
])('fastify: decorators: %o is refused', async (decorators, words) => {
  const options = { ...storeOptions(), decorators: decorators as object }
  await expect(Fastify().register(fastifySessions, options)).rejects.toThrow(words)
})

test('fastify: errorHandler must be true or false', async () => {
  const options = { ...storeOptions(), errorHandler: 'no' as never }
  await expect(Fastify().register(fastifySessions, options)).rejects.toThrow(
    'errorHandler must be true or false',
  )
})

test('express: an error for each request if used twice', async () => {
  const sessions = await expressSessions(storeOptions())
  onTestFinished(() => sessions.close())
  const errors: unknown[] = []
  const request = {} as Express.Request & Parameters<typeof sessions.middleware>[0]
  for (const _ of [1, 2]) {
    sessions.middleware(request, {} as never, (error) => errors.push(error))
  }
  expect(errors).toEqual([
    undefined,
    new Error('req.onetrip already exists: expressSessions is used twice'),
  ])
})
