import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { externalSessions } from '../src/adapters/external-sessions.ts'
import { createSessionStore, type SessionStoreOptions } from '../src/core/index.ts'
import { createTokens } from '../src/core/tokens/tokens.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

const server = redisOfThisFile()

function storeForThisTest(options: Partial<SessionStoreOptions>) {
  const url = `unix://${server.socket}`
  const store = createSessionStore({ url, tokens: false, janitor: 'elsewhere', ...options })
  onTestFinished(() => store.close())
  return store
}

test('without tokens, everything works that needs no token', async () => {
  const store = storeForThisTest({ janitor: {} })
  await store.ready()
  await externalSessions(store).put('one', { cart: ['book'] })
  expect(await externalSessions(store).read('one')).toEqual({
    fields: { cart: ['book'] },
    version: 1,
  })
  expect(await store.recentSessions()).toEqual([{ user: null, lastSeenAt: expect.any(Number) }])
  expect(await store.janitor().runOnce()).toMatchObject({ worked: true })
  expect(await store.endUserSessions('ada')).toBe(0)
})

test('without tokens, a function that needs one fails', async () => {
  const store = storeForThisTest({})
  const token = createTokens({ secrets: ['a-secret-for-tests-a-secret-for-tests'] }).issue()
  const reason = 'the store has no tokens (tokens: false)'
  for (const call of [() => issueToken(store), () => store.tokenExpiresAt(token)]) {
    expect(call).toThrow(TypeError)
    expect(call).toThrow(reason)
  }
  const calls = [
    () => store.login('ada'),
    () => store.login('ada', { from: token }),
    () => store.loginGuest(),
    () => runUpdateToken(store, token, 'ada'),
    () => store.recordView(token, 'book'),
    () => store.checkToken(token),
    () => store.data(token),
    () => store.patch(token, {}),
    () => store.touch(token),
    () => store.viewedItems(token),
    () => store.logout(token),
    () => store.userSessions(token),
    () => store.revokeSession(token, 'an-id'),
    () => store.logoutEverywhere(token),
  ]
  for (const call of calls) {
    const failed = call()
    await expect(failed).rejects.toThrow(TypeError)
    await expect(failed).rejects.toThrow(reason)
  }
  expect(await server.redis.dbsize()).toBe(0)
})

test.each([true, null, undefined, {}])('tokens: %s is refused', (tokens) => {
  expect(() => storeForThisTest({ tokens: tokens as never })).toThrow('tokens.secrets')
})
