import { setImmediate } from 'node:timers/promises'
import type { Request } from 'express'
import session, { type SessionOptions } from 'express-session'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import { errorChannel, articleKeys as keys } from '../../src/core/index.ts'
import { messagesOf, warningsOfThisTest } from '../fixture.ts'
import { retentionServer } from '../retention-fixture.ts'
import { expressForThisTest, rounded, versionsOfExpress } from './express-app.ts'
import { fatalErrorsOfThisTest, tooManyFields } from './fixture.ts'

const server = retentionServer()

const HOUR = 3_600_000
const remembered = { maxAge: 10 * 24 * HOUR }

describe.each(versionsOfExpress)('%s', (_, express, adapter) => {
  const applicationForThisTest = (options: Partial<SessionOptions> = {}) =>
    expressForThisTest(server, { express, session: options, adapter })

  test('parallel requests that change different fields lose no change', async () => {
    const { browser, hold, adapter } = await applicationForThisTest()
    const ask = browser()
    const { id } = await ask({ set: { cart: ['book'], old: 1 } })
    const slow = hold('slow')
    const late = ask({ set: { theme: 'dark' }, remove: ['old'], hold: 'slow' })
    await slow.arrived
    await ask({ set: { cart: ['book', 'pen'] } })
    slow.release()
    await late
    const saved = await adapter.get(id)
    expect(saved).toMatchObject({ cart: ['book', 'pen'], theme: 'dark' })
    expect(saved).not.toHaveProperty('old')
  })

  test.each([
    ['a read-only request', {}],
    ['a request that saves', { set: { theme: 'dark' } }],
    ['a request that saves twice', { call: 'twice' }],
  ] as const)('%s does not reset a cookie that another one changed', async (_, step) => {
    const { browser, hold, adapter, clock, store } = await applicationForThisTest({
      cookie: { maxAge: HOUR },
    })
    const ask = browser()
    const { id } = await ask({ set: { user: 'ada' } })
    const slow = hold('slow')
    const late = ask({ ...step, hold: 'slow' })
    await slow.arrived
    await ask(remembered)
    const { cookie } = (await adapter.get(id)) ?? {}
    expect(cookie).toMatchObject({ originalMaxAge: rounded(remembered.maxAge) })
    clock.pass(60)
    slow.release()
    const { session } = await late
    const written = 'call' in step ? { again: true } : 'set' in step ? step.set : {}
    expect(await adapter.get(id)).toEqual({ cookie, user: 'ada', ...written })
    expect(session).toMatchObject({ cookie: { originalMaxAge: rounded(HOUR) } })
    expect(await store.recentSessions()).toMatchObject([{ lastSeenAt: clock.ms }])
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

  test.each(['destroy', 'regenerate'] as const)(
    'a late save does not bring back a session that another request ended with %s',
    async (call) => {
      const { browser, hold, adapter, errors } = await applicationForThisTest()
      const ask = browser()
      const { id } = await ask({ set: { user: 'ada' } })
      const slow = hold('slow')
      const late = ask({ set: { theme: 'dark' }, hold: 'slow' })
      await slow.arrived
      const after = await ask({ call, set: { user: 'ada' } })
      expect(after.id === id).toBe(call === 'destroy')
      // Even after the tombstone has expired.
      await server.redis.del(keys.ended(`ext:${id}`))
      slow.release()
      await late
      expect(await adapter.get(id)).toBe(null)
      expect(await server.redis.hexists(keys.login(''), `ext:${id}`)).toBe(0)
      expect(errors).toEqual([])
    },
  )

  test('a second save in one request also writes only changes', async () => {
    const { browser, adapter, store } = await applicationForThisTest()
    const ask = browser()
    const { id } = await ask({ set: { user: 'ada' }, call: 'twice' })
    expect(await adapter.get(id)).toMatchObject({ user: 'ada', again: true })

    const data = { cookie: new session.Cookie(), user: 'ada' }
    await adapter.set('one', data)
    await externalSessions(store).patch('one', { cart: ['book'] })
    await adapter.set('one', Object.assign(data, { theme: 'dark' }))
    expect(await adapter.get('one')).toMatchObject({ cart: ['book'], theme: 'dark' })
  })

  test.each([true, false])('rolling: %s; each request extends the session', async (rolling) => {
    const { browser, adapter } = await applicationForThisTest({
      rolling,
      cookie: { maxAge: 60_000 },
    })
    const ask = browser()
    const { id } = await ask({ set: { user: 'ada' } })
    const expires = async () => Number(new Date((await adapter.get(id))?.cookie.expires ?? 0))
    const first = await expires()
    expect(first).toBeGreaterThan(Date.now())
    const { cookieSet } = await ask()
    expect(cookieSet).toBe(rolling)
    await expect.poll(async () => (await ask()) && (await expires())).toBeGreaterThan(first)
  })

  test('a save that fails is a warning, and reaches the error handler after the response', async () => {
    const warnings = warningsOfThisTest()
    const { browser, failures } = await applicationForThisTest()
    await browser()({ set: tooManyFields }) // 200
    await expect.poll(() => failures.length).toBe(1)
    const error = expect.objectContaining({ code: 'ONETRIP_INVALID_INPUT' })
    expect(failures).toEqual([{ error, headersSent: true }])
    expect(warnings).toEqual([
      { code: 'ONETRIP_SESSION_NOT_SAVED', message: expect.stringContaining('at most 10000') },
    ])
  })
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

test('a callback that fails is not called again, and warns at most once a minute', async () => {
  const fatal = fatalErrorsOfThisTest()
  const warnings = warningsOfThisTest()
  const { adapter } = await expressForThisTest(server)
  const thrown = new TypeError('about ada')
  let calls = 0
  const callback = () => {
    calls++
    throw thrown
  }
  const found: unknown[] = []
  found.push(await adapter.get('one', callback))
  found.push(await adapter.get('one', async () => callback()))
  await adapter.get('', callback) // an error for the callback
  expect(calls).toBe(3)
  const first = {
    code: 'ONETRIP_CALLBACK_FAILED',
    message: 'a callback of the session store threw TypeError; its request may have no response',
    error: thrown,
  }
  expect(warnings).toEqual([first])
  const now = performance.now()
  vi.spyOn(performance, 'now').mockReturnValue(now + 60_000)
  onTestFinished(() => void vi.restoreAllMocks())
  found.push(await adapter.get('one', callback))
  const message = `${first.message}; 2 more since the last such warning`
  expect(warnings).toEqual([first, { ...first, message }])
  expect(found).toEqual([null, null, null])
  await setImmediate()
  expect(fatal).toEqual([])
})

test('destroy without a callback does not end the process if Redis is not available', async () => {
  const { adapter, store } = await expressForThisTest(server)
  const request = { sessionID: 'one', sessionStore: adapter } as unknown as Request
  const loaded = adapter.createSession(request, { cookie: new session.Cookie() })
  const failures = messagesOf(errorChannel)
  const fatal = fatalErrorsOfThisTest()
  await store.close()
  loaded.destroy(undefined as never) // the types require a callback, JavaScript does not
  await expect.poll(() => failures).toHaveLength(1)
  await setImmediate() // Node.js emits unhandledRejection before
  expect(fatal).toEqual([])
  await expect(adapter.destroy('one')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
})
