import session, { type SessionOptions } from 'express-session'
import { describe, expect, test } from 'vitest'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import { articleKeys as keys, type SessionStoreOptions } from '../../src/core/index.ts'
import { warningsOfThisTest } from '../fixture.ts'
import { retentionServer } from '../retention-fixture.ts'
import { expressForThisTest, rounded, versionsOfExpress } from './express-app.ts'

const server = retentionServer()

const version = async (id: string) => Number(await server.redis.hget(keys.data(`ext:${id}`), ''))
const HOUR = 3_600_000
const remembered = { maxAge: 10 * 24 * HOUR }

describe.each(versionsOfExpress)('%s', (_, express) => {
  const applicationForThisTest = (
    options: Partial<SessionOptions> = {},
    storeOptions: Partial<SessionStoreOptions> = {},
  ) => expressForThisTest(server, { express, session: options, store: storeOptions })

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
    await externalSessions(store).patch('one', { cart: ['book'] })
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
    const dataLimits = { fieldBytes: 1_000 }
    const { browser, failures } = await applicationForThisTest({}, { dataLimits })
    await browser()({ set: { cart: 'x'.repeat(1_000) } }) // 200
    await expect.poll(() => failures.length).toBe(1)
    const error = expect.objectContaining({ code: 'ONETRIP_INVALID_INPUT' })
    expect(failures).toEqual([{ error, headersSent: true }])
    expect(warnings).toEqual([
      { code: 'ONETRIP_SESSION_NOT_SAVED', message: expect.stringContaining('data field "cart"') },
    ])
  })
})
