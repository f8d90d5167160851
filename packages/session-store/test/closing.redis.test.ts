import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { articleKeys as keys, retentionChannel, type SessionStoreOptions } from '../src/index.ts'
import { codeOf, gone, idOf, newStore, readyStore } from './fixture.ts'

const server = redisOfThisFile()
const SESSIONS = 120 // more than one page

/** A store, and one of many sessions of ada. */
async function manySessions(options: Partial<SessionStoreOptions> = {}) {
  const url = `unix://${server.socket}`
  const store = await readyStore({ redis: url, maxSessionsPerUser: 1_000, ...options })
  const logins = await Promise.all(Array.from({ length: SESSIONS }, () => store.login('ada')))
  return { store, token: logins[0]?.token ?? '' }
}

test('close waits for all round trips of a call', async () => {
  const { store, token } = await manySessions()
  const everywhere = store.logoutEverywhere(token)
  const closed = store.close()
  const error = { code: 'ONETRIP_NOT_SENT', message: 'not sent to Redis: the store is closed' }
  for (const call of [
    () => store.login('eve'),
    () => store.loginGuest(),
    () => store.checkToken(token),
    () => store.patch(token, { cart: [] }),
    () => store.popularItems(),
    () => store.run({ commands: [['PING']], readOnly: true, read: () => 'sent' }),
    () => store.ping(),
    () => store.janitor().runOnce(),
  ]) {
    await expect(call(), `${call}`).rejects.toMatchObject(error)
  }
  await closed
  expect(await everywhere).toBe(SESSIONS)
  expect(await server.redis.hlen(keys.login(''))).toBe(0)
  await expect(store.ping()).rejects.toMatchObject(error)
})

test('a view of a session that has ended is undone before the store closes', async () => {
  const store = await readyStore({ redis: `unix://${server.socket}` })
  const { token } = await store.login('ada')
  await store.logout(token)
  const view = store.recordView(token, 'book')
  const closed = store.close()
  await expect(view).rejects.toMatchObject(gone)
  await closed
  expect(await server.redis.exists(keys.popular('book'), keys.viewed(idOf(token)))).toBe(0)
})

test('close does not wait for a server that does not reply', async () => {
  const redis = await redisForThisTest()
  const { store, token } = await manySessions({
    redis: `unix://${redis.socket}`,
    deadlineMs: 2_000,
  })
  const janitor = store.janitor({ batchSize: 1, maxSessions: 0 })
  const stepDone = Promise.withResolvers<unknown>()
  retentionChannel.subscribe(stepDone.resolve)
  onTestFinished(() => void retentionChannel.unsubscribe(stepDone.resolve))
  const run = janitor.runOnce().catch(codeOf)
  await stepDone.promise
  redis.program.signal('SIGSTOP')
  const everywhere = store.logoutEverywhere(token).catch(codeOf)
  const beforeTwoDeadlines = store.ping(3_500).catch(() => 'two deadlines')
  const closed = store.close().then(() => 'closed')
  await expect(store.checkToken(token)).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  expect(await Promise.race([closed, beforeTwoDeadlines])).toBe('closed')
  expect([await everywhere, await run]).toEqual([
    'ONETRIP_OUTCOME_UNKNOWN',
    'ONETRIP_OUTCOME_UNKNOWN',
  ])
})

test('close ends the wait of ready()', async () => {
  const store = newStore({ redis: 'unix:///nowhere/redis.sock' })
  const ready = store.ready(60_000)
  const reason = expect(ready).rejects.toThrow('the store is closed')
  await store.close()
  await reason
})
