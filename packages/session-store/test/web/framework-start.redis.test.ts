import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import Fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { SessionStore } from '../../src/index.ts'
import { expressSessions } from '../../src/web/express.ts'
import { fastifySessions, type RequestSession } from '../../src/web/fastify.ts'
import { readyStore, tokens } from '../fixture.ts'
import { frameworks, type Options } from './framework-apps.ts'

const require = createRequire(import.meta.url)
const server = redisOfThisFile()

const storeOptions = () => ({
  redis: `unix://${server.socket}`,
  tokens,
  janitor: 'elsewhere' as const,
  deadlineMs: 30_000,
})

describe.each(Object.entries(frameworks))('%s', (_, start) => {
  test('does not close a store that was passed in, but closes its own', async () => {
    const given = await readyStore(storeOptions())
    const app = await start({ store: given })
    expect(app.store).toBe(given)
    await app.close()
    await given.ping()

    const own = await start(storeOptions())
    await own.close()
    await expect(own.store.ping()).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  })

  test.each([
    [{ tokens: false }, 'tokens.secrets must be'],
    [{ publicOrigins: ['shop.example'] }, 'publicOrigins'],
    [{ bearer: 'no' }, 'bearer'],
    [{ store: {} }, 'without effect'],
    [{ idleSecond: 60 }, 'no option idleSecond'],
    [{ cookie: { maxAge: 60 } }, 'cookie has no option maxAge'],
    [{ publicOrigins: null }, 'publicOrigins must be a list of origins such as'],
    [{ readyTimeoutMs: -1 }, 'readyTimeoutMs must be a number from 0 to'],
    [{ cookie: null }, 'the options of cookie must be an object'],
    [{ cookie: { name: 5 } }, 'cookie.name must be a string'],
    [{ cookie: { sameSite: true } }, 'cookie.sameSite must be one of'],
  ])('%o does not start', async (options, words) => {
    const starting = start({ ...storeOptions(), ...options } as Options)
    await expect(starting).rejects.toThrow(TypeError)
    await expect(starting).rejects.toThrow(words)
  })

  test.each([{ login() {} }, null])(
    'store: %o is not a store, and does not start',
    async (store) => {
      const starting = start({ store } as unknown as Options)
      await expect(starting).rejects.toThrow(/store needs the functions .*checkToken/)
    },
  )

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
    'decorators.session',
  )
  const withStore = Fastify().decorate('store', null as never)
  await expect(withStore.register(fastifySessions, storeOptions())).rejects.toThrow(
    'decorators.store',
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
  [{ decorators: { session: 5 } }, 'decorators.session'],
  [{ decorators: { stores: 'x' } }, 'no option stores'],
  [{ errorHandler: 'no' }, 'errorHandler'],
])('fastify: %o is refused', async (wrong, words) => {
  const options = { ...storeOptions(), ...wrong } as Options
  await expect(Fastify().register(fastifySessions, options)).rejects.toThrow(words)
})

test('express: an error for each request if used twice', async () => {
  const sessions = await expressSessions(storeOptions())
  onTestFinished(() => sessions.close())
  const errors: unknown[] = []
  const request = {} as Express.Request & Parameters<typeof sessions.middleware>[0]
  for (const _ of [1, 2]) {
    sessions.middleware(request, {} as never, (error) => errors.push(error))
  }
  expect(errors).toEqual([undefined, expect.any(Error)])
})

test('express 4 is refused: each request gets an error that says so, and the process goes on', async () => {
  const sessions = await expressSessions(storeOptions())
  onTestFinished(() => sessions.close())
  const app = require('express-4')()
  app.use(sessions.middleware)
  // As in the README. Express 4 would not notice its error.
  app.get('/me', async (req: Express.Request) => await req.onetrip.check())
  app.set('env', 'test') // no log
  const server = app.listen(0)
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/me`)
  expect([response.status, await response.text()]).toEqual([
    500,
    expect.stringContaining('expressSessions needs Express 5'),
  ])
})
