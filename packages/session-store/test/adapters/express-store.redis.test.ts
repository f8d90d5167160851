import { setImmediate } from 'node:timers/promises'
import type { Request } from 'express'
import session from 'express-session'
import { expect, onTestFinished, test, vi } from 'vitest'
import { errorChannel } from '../../src/core/index.ts'
import { warningsOfThisTest } from '../fixture.ts'
import { retentionServer } from '../retention-fixture.ts'
import { expressForThisTest, rounded } from './express-app.ts'
import { fatalErrorsOfThisTest } from './fixture.ts'

const server = retentionServer()

const HOUR = 3_600_000
const remembered = { maxAge: 10 * 24 * HOUR }

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
  let failures = 0
  const count = () => failures++
  errorChannel.subscribe(count)
  onTestFinished(() => void errorChannel.unsubscribe(count))
  const fatal = fatalErrorsOfThisTest()
  await store.close()
  loaded.destroy(undefined as never) // the types require a callback, JavaScript does not
  await expect.poll(() => failures).toBe(1)
  await setImmediate() // Node.js emits unhandledRejection before
  expect(fatal).toEqual([])
  await expect(adapter.destroy('one')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
})
