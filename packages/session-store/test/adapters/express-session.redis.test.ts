import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import express, { type Request, type Response } from 'express'
import session, { type SessionOptions } from 'express-session'
import { expect, onTestFinished, test } from 'vitest'
import { expressSessionStore } from '../../src/express-session.ts'
import { errorChannel, articleKeys as keys } from '../../src/index.ts'
import { Clock, retentionServer } from '../retention-fixture.ts'

const server = retentionServer()

/** Avoids declaring SessionData for the whole repository. */
const fieldsOf = ({ session }: Request) => session as unknown as Record<string, unknown>

/** An application with express-session. Each call of `browser` returns a new client with its own cookies. */
async function applicationForThisTest(options: Partial<SessionOptions> = {}) {
  const clock = new Clock()
  const store = await server.storeForThisTest(clock)
  const app = express()
  const adapter = expressSessionStore(store)
  const errors: unknown[] = []
  app.use(
    session({
      secret: 'keyboard cat',
      resave: false,
      saveUninitialized: false,
      ...options,
      store: adapter,
    }),
  )
  const held = new Map<string, { arrived: () => void; go: Promise<void> }>()
  const act = async (request: Request, response: Response) => {
    const { set = {}, remove = [], hold, call } = request.body
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const done = (error: unknown) => resolve(error)
    if (hold) {
      const { arrived, go } = held.get(hold) ?? {}
      arrived?.()
      await go
    }
    Object.assign(request.session, set)
    for (const field of remove) delete fieldsOf(request)[field]
    if (call) {
      if (call === 'twice') {
        await new Promise((saved) => request.session.save(saved))
        fieldsOf(request).again = true
        request.session.save(done)
      } else request.session[call as 'destroy' | 'regenerate' | 'reload'](done)
      const error = await promise
      if (error) errors.push(error)
    }
    response.json({ id: request.sessionID, session: request.session ?? null })
  }
  app.post('/', express.json(), act)
  const listening = app.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  onTestFinished(() => {
    listening.closeAllConnections()
    listening.close()
  })
  const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/`

  interface Step {
    set?: Record<string, unknown>
    remove?: string[]
    hold?: string
    call?: 'destroy' | 'regenerate' | 'reload' | 'twice'
  }
  const browser = () => {
    let cookie = ''
    return async (step: Step = {}) => {
      const headers = { cookie, 'content-type': 'application/json' }
      const body = JSON.stringify(step)
      const response = await fetch(url, { method: 'POST', headers, body })
      expect(response.status).toBe(200)
      const [given] = response.headers.getSetCookie()
      if (given) cookie = given.split(';')[0] ?? ''
      const answer = await response.json()
      return { ...(answer as object), cookieSet: given !== undefined } as {
        id: string
        session: Record<string, unknown> | null
        cookieSet: boolean
      }
    }
  }
  /** A request with `hold: name` loads its session, then waits until `release` is called. */
  const hold = (name: string) => {
    const arrived = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    held.set(name, { arrived: arrived.resolve, go: go.promise })
    return { arrived: arrived.promise, release: go.resolve }
  }
  return { store, adapter, clock, browser, hold, errors }
}

const version = async (id: string) => Number(await server.redis.hget(keys.data(`ext:${id}`), ''))

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

test('regenerate starts a new session, and reload reads what other requests wrote', async () => {
  const { browser, adapter } = await applicationForThisTest()
  const ask = browser()
  const first = await ask({ set: { user: 'ada' } })
  const second = await ask({ call: 'regenerate' })
  expect(second.session).not.toHaveProperty('user')
  const third = await ask({ set: { user: 'ada' } })
  expect(third.id).not.toBe(first.id)
  const { session: reloaded } = await ask({ set: { user: 'eve' }, call: 'reload' })
  expect(reloaded?.user).toBe('ada')
  expect(await adapter.get(third.id)).toMatchObject({ user: 'ada' })
  const { session: ended } = await ask({ call: 'destroy' })
  expect(ended).toBe(null)
  expect(await adapter.length()).toBe(0)
})

test('a second save in one request also writes only changes', async () => {
  const { browser, adapter, store } = await applicationForThisTest()
  const ask = browser()
  const { id } = await ask({ set: { user: 'ada' }, call: 'twice' })
  expect(await adapter.get(id)).toMatchObject({ user: 'ada', again: true })

  const data = { cookie: new session.Cookie(), user: 'ada' }
  await adapter.set('one', data)
  await store.external.patch('one', { cart: ['book'] })
  await adapter.set('one', Object.assign(data, { theme: 'dark' }))
  expect(await adapter.get('one')).toMatchObject({ cart: ['book'], theme: 'dark' })
})

test.each([true, false])('saveUninitialized: %s', async (saveUninitialized) => {
  const { browser, adapter } = await applicationForThisTest({ saveUninitialized })
  expect((await browser()()).cookieSet).toBe(saveUninitialized)
  expect(await adapter.length()).toBe(saveUninitialized ? 1 : 0)
})

test.each([true, false])('resave: %s', async (resave) => {
  const { browser, clock, store } = await applicationForThisTest({ resave })
  const ask = browser()
  await ask({ set: { user: 'ada' } })
  clock.pass(60)
  const { id } = await ask()
  expect(await version(id)).toBe(2) // by set, or by touch
  expect(await store.recentSessions()).toEqual([{ user: null, lastSeenAt: clock.ms }])
})

test.each([true, false])('rolling: %s; each request extends the session', async (rolling) => {
  const { browser, adapter } = await applicationForThisTest({ rolling, cookie: { maxAge: 60_000 } })
  const ask = browser()
  const { id } = await ask({ set: { user: 'ada' } })
  const expires = async () => Number(new Date((await adapter.get(id))?.cookie.expires ?? 0))
  const first = await expires()
  expect(first).toBeGreaterThan(Date.now())
  const { cookieSet } = await ask()
  expect(cookieSet).toBe(rolling)
  await expect.poll(async () => (await ask()) && (await expires())).toBeGreaterThan(first)
})

test('a callback that throws is not called again', async () => {
  const { adapter } = await applicationForThisTest()
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  const { promise, resolve } = Promise.withResolvers<Error>()
  process.once('uncaughtException', resolve)
  let calls = 0
  void adapter.get('one', () => {
    calls++
    throw new Error('from the callback')
  })
  expect((await promise).message).toBe('from the callback')
  for (const listener of listeners) process.on('uncaughtException', listener)
  expect(calls).toBe(1)
})

test('destroy without a callback does not end the process if Redis is not available', async () => {
  const { adapter, store } = await applicationForThisTest()
  const request = { sessionID: 'one', sessionStore: adapter } as unknown as Request
  const loaded = adapter.createSession(request, { cookie: new session.Cookie() })
  let failures = 0
  const count = () => failures++
  errorChannel.subscribe(count)
  const unhandled: unknown[] = []
  const listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', (error) => unhandled.push(error))
  onTestFinished(() => {
    errorChannel.unsubscribe(count)
    process.removeAllListeners('unhandledRejection')
    for (const listener of listeners) process.on('unhandledRejection', listener)
  })
  await store.close()
  loaded.destroy(undefined as never) // the types require a callback, JavaScript does not
  await expect.poll(() => failures).toBe(1)
  await setImmediate() // Node.js emits unhandledRejection before
  expect(unhandled).toEqual([])
  await expect(adapter.destroy('one')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
})
