import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { externalSessions } from '../src/adapters/adapter.ts'
import {
  createSessionStore,
  articleKeys as keys,
  retentionChannel,
  type SessionStoreOptions,
  strategyNames,
} from '../src/core/index.ts'
import { idOf } from './fixture.ts'

const server = redisOfThisFile()
const secrets = ['a-secret-for-tests-a-secret-for-tests']
const SESSIONS = 120 // more than one page

async function storeForThisTest(options: Partial<SessionStoreOptions> = {}) {
  const store = createSessionStore({
    url: `unix://${server.socket}`,
    tokens: { secrets },
    janitor: 'elsewhere',
    maxSessionsPerUser: 1_000,
    deadlineMs: 20_000,
    ...options,
  })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

async function logInOften(store: Awaited<ReturnType<typeof storeForThisTest>>): Promise<string> {
  const logins = await Promise.all(Array.from({ length: SESSIONS }, () => store.login('ada')))
  return logins[0]?.token ?? ''
}

const left = () => server.redis.hlen(keys.login(''))

test.each(strategyNames)('%s: close waits for all round trips of a call', async (strategy) => {
  const store = await storeForThisTest({ strategy })
  const token = await logInOften(store)
  const everywhere = store.logoutEverywhere(token)
  await store.close()
  expect(await everywhere).toBe(SESSIONS)
  expect(await left()).toBe(0)
})

test.each(['eraseUser', 'endUserSessions'] as const)('close waits for %s', async (name) => {
  const store = await storeForThisTest()
  await logInOften(store)
  const ending = store[name]('ada')
  await store.close()
  expect(await ending).toBe(SESSIONS)
  expect(await left()).toBe(0)
})

test('a view of a session that has ended is undone before the store closes', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  await store.logout(token)
  const view = store.recordView(token, 'book')
  const closed = store.close()
  await expect(view).rejects.toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
  await closed
  expect(await server.redis.exists(keys.popular('book'), keys.viewed(idOf(token)))).toBe(0)
})

test('while close waits for a call, no other call can start', async () => {
  const store = await storeForThisTest()
  const token = await logInOften(store)
  const everywhere = store.logoutEverywhere(token)
  const closed = store.close()
  for (const call of [
    () => store.login('eve'),
    () => store.loginGuest(),
    () => store.checkToken(token),
    () => store.patch(token, { cart: [] }),
    () => store.popularItems(),
    () => store.run({ commands: [['PING']], readOnly: true, read: () => 'sent' }),
    () => store.ping(),
    () => externalSessions(store).put('id', {}),
    () => store.janitor().runOnce(),
  ]) {
    await expect(call(), `${call}`).rejects.toMatchObject({
      code: 'ONETRIP_NOT_SENT',
      message: 'not sent to Redis: the store is closed',
    })
  }
  await Promise.all([everywhere, closed])
  await expect(store.ping()).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  expect(await left()).toBe(0)
})

test('close does not wait for a server that does not reply', async () => {
  const redis = await redisForThisTest()
  const store = await storeForThisTest({ url: `unix://${redis.socket}`, deadlineMs: 300 })
  const token = await logInOften(store)
  const janitor = store.janitor({ batchSize: 1, maxSessions: 0 })
  const stepDone = Promise.withResolvers<unknown>()
  retentionChannel.subscribe(stepDone.resolve)
  onTestFinished(() => void retentionChannel.unsubscribe(stepDone.resolve))
  const run = janitor.runOnce().catch((error: unknown) => error)
  await stepDone.promise
  redis.program.signal('SIGSTOP')
  const everywhere = store.logoutEverywhere(token).catch((error: unknown) => error)
  const beforeTwoDeadlines = store.ping(500).catch(() => 'two deadlines')
  const closed = store.close().then(() => 'closed')
  await expect(store.checkToken(token)).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  expect(await Promise.race([closed, beforeTwoDeadlines])).toBe('closed')
  expect(await everywhere).toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
  expect(await run).toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
})

test('close ends the wait of ready()', async () => {
  const store = createSessionStore({ url: 'unix:///nowhere/redis.sock', tokens: { secrets } })
  const ready = store.ready(60_000)
  const reason = expect(ready).rejects.toThrow('the store is closed')
  await store.close()
  await reason
})
