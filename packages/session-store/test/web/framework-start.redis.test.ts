import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import Fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { expressSessions } from '../../src/express.ts'
import { fastifySessions } from '../../src/fastify.ts'
import { createSessionStore } from '../../src/index.ts'
import { frameworks, type Options } from './framework-apps.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

const storeOptions = () => ({
  url: `unix://${server.socket}`,
  tokens,
  janitor: false as const,
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
    [{ cookie: { sameSite: 'none', secure: false } }, 'sameSite'],
    [{ publicOrigins: ['shop.example'] }, 'publicOrigins'],
    [{ bearer: 'no' }, 'bearer'],
    [{ store: {} }, 'without effect'],
    [{ publicOrigin: ['https://shop.example'] }, 'did you mean publicOrigins?'],
    [{ idleSecond: 60 }, 'the sessions plugin has no option idleSecond: did you mean idleSeconds?'],
    [{ cookie: { maxAge: 60 } }, 'cookie has no option maxAge'],
  ])('%o does not start', async (options, words) => {
    const starting = start({ ...storeOptions(), ...options } as Options)
    await expect(starting).rejects.toThrow(TypeError)
    await expect(starting).rejects.toThrow(words)
  })

  test('an object that is not a store does not start', async () => {
    const starting = start({ store: { login() {} } } as unknown as Options)
    await expect(starting).rejects.toThrow('store needs the functions checkToken')
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
    const starting = start({ sender, tokens, janitor: false, readyTimeoutMs: 1 })
    await expect(starting).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
    expect(closed).toBe(true)
  })
})

test('fastify: an error if registered twice or with another session plugin', async () => {
  const app = Fastify()
  onTestFinished(() => app.close())
  await app.register(fastifySessions, storeOptions())
  await expect(app.register(fastifySessions, storeOptions())).rejects.toThrow('registered twice')
  const other = Fastify()
  other.decorateRequest('session', null as never)
  await expect(other.register(fastifySessions, storeOptions())).rejects.toThrow('@fastify/session')
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
