import { setImmediate } from 'node:timers/promises'
import type { Request } from 'express'
import session, { type SessionOptions } from 'express-session'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { expressForThisTest, rounded, versionsOfExpress } from './express-app.ts'
import { fatalErrorsOfThisTest, sessionServer, warningsOfThisTest } from './fixture.ts'

const server = sessionServer()

const HOUR = 3_600_000
const remembered = { maxAge: 10 * 24 * HOUR }

describe.each(versionsOfExpress)('%s', (_, express, adapter) => {
  const applicationForThisTest = (options: Partial<SessionOptions> = {}) =>
    expressForThisTest(server, { express, session: options, adapter })

  test.each([
    ['a read-only request', {}],
    ['a request that saves', { set: { theme: 'dark' } }],
    ['a request that saves twice', { call: 'twice' }],
  ] as const)('%s does not reset a cookie that another one changed', async (_, step) => {
    const { browser, hold, adapter } = await applicationForThisTest({ cookie: { maxAge: HOUR } })
    const ask = browser()
    const { id } = await ask({ set: { user: 'ada' } })
    const slow = hold('slow')
    const late = ask({ ...step, hold: 'slow' })
    await slow.arrived
    await ask(remembered)
    const { cookie } = (await adapter.get(id)) ?? {}
    expect(cookie).toMatchObject({ originalMaxAge: rounded(remembered.maxAge) })
    slow.release()
    const { session } = await late
    const written = 'call' in step ? { again: true } : 'set' in step ? step.set : {}
    expect(await adapter.get(id)).toEqual({ cookie, user: 'ada', ...written })
    expect(session).toMatchObject({ cookie: { originalMaxAge: rounded(HOUR) } })
    expect(await server.redis.pttl(`express:${id}`)).toBeGreaterThan(remembered.maxAge - HOUR)
  })

  test('a changed cookie is written even if another request rolled or changed it', async () => {
    const { browser, hold, adapter } = await applicationForThisTest({ cookie: { maxAge: HOUR } })
    const ask = browser()
    const { id } = await ask({ set: { user: 'ada' } })
    for (const parallel of [{}, { maxAge: 2 * HOUR }]) {
      await ask({ maxAge: HOUR })
      const slow = hold('slow')
      const late = ask({ ...remembered, hold: 'slow' })
      await slow.arrived
      await ask(parallel)
      slow.release()
      await late
      expect(await adapter.get(id)).toMatchObject({
        cookie: { originalMaxAge: rounded(remembered.maxAge) },
      })
    }
  })

  test('a save that fails reaches the error handler after the response', async () => {
    const { browser, failures } = await applicationForThisTest()
    await browser()({ set: { '': 1 } }) // 200
    await expect.poll(() => failures.length).toBe(1)
    const error = expect.objectContaining({ code: 'ONETRIP_INVALID_INPUT' })
    expect(failures).toEqual([{ error, headersSent: true }])
  })
})

test('a second save of an object also writes only changes', async () => {
  const { adapter } = await expressForThisTest(server)
  const data = { cookie: new session.Cookie(), user: 'ada' }
  await adapter.set('one', data)
  await server.redis.hset('express:one', 'cart', '["book"]')
  await adapter.set('one', Object.assign(data, { theme: 'dark' }))
  expect(await adapter.get('one')).toMatchObject({ cart: ['book'], theme: 'dark' })
})

test('the rounding of express-session is no change of the cookie', async () => {
  const { adapter } = await expressForThisTest(server)
  await adapter.set('one', { cookie: Object.assign(new session.Cookie(), { maxAge: HOUR }) })
  const load = async () => {
    const found = await adapter.get('one')
    if (!found) throw new Error('there is no session')
    const request = { sessionID: 'one', sessionStore: adapter } as unknown as Request
    return adapter.createSession(request, found)
  }
  const [late, early] = [await load(), await load()]
  Object.assign(early.cookie, remembered)
  await adapter.touch('one', early)
  let now = Date.now()
  vi.spyOn(Date, 'now').mockImplementation(() => now++)
  onTestFinished(() => void vi.restoreAllMocks())
  late.touch()
  expect(late.cookie.originalMaxAge).toBeLessThan(HOUR)
  await adapter.touch('one', late)
  expect(await adapter.get('one')).toMatchObject({
    cookie: { originalMaxAge: rounded(remembered.maxAge) },
  })
})

test('a callback that fails is not called again, and is a warning', async () => {
  const fatal = fatalErrorsOfThisTest()
  const warnings = warningsOfThisTest()
  const { adapter } = await expressForThisTest(server)
  let calls = 0
  const callback = () => {
    calls++
    throw new TypeError('about ada')
  }
  const found: unknown[] = []
  found.push(await adapter.get('one', callback))
  found.push(await adapter.get('one', async () => callback()))
  await adapter.get('', callback) // an error for the callback
  expect(calls).toBe(3)
  expect(found).toEqual([null, null])
  await expect.poll(() => warnings).toHaveLength(3)
  expect(warnings[0]).toMatchObject({
    code: 'ONETRIP_CALLBACK_FAILED',
    message: 'a callback of the session store failed; its request may have no response',
    detail: expect.stringContaining('TypeError: about ada'),
  })
  expect(fatal).toEqual([])
})

test('destroy without a callback does not end the process if Redis is not available', async () => {
  const { adapter, store } = await expressForThisTest(server)
  const request = { sessionID: 'one', sessionStore: adapter } as unknown as Request
  const loaded = adapter.createSession(request, { cookie: new session.Cookie() })
  const fatal = fatalErrorsOfThisTest()
  await store.close()
  loaded.destroy(undefined as never) // the types require a callback, JavaScript does not
  await expect(adapter.destroy('two')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  await setImmediate() // Node.js emits unhandledRejection before
  expect(fatal).toEqual([])
  await expect(adapter.destroy('one')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
})
