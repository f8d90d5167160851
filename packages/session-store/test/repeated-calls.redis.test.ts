import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import type { Outcome, SessionStore } from '../src/index.ts'
import { idOf, newStore } from './fixture.ts'

const server = redisOfThisFile()

/** A store and the tokens of two sessions of ada. */
async function storeForThisTest() {
  /** What happens to the replies to a list of commands that writes, after Redis has executed it. */
  const state: { fail?: ((outcomes: Outcome[]) => Outcome[]) | undefined } = {}
  const store = newStore({
    sender: {
      name: 'own',
      async send({ commands }) {
        const outcomes = await Promise.all(
          commands.map(([name, ...args]) => server.redis.call(name, ...args) as Promise<Outcome>),
        )
        const writes = commands.some(([name]) => /^(?:EVAL|ZADD|HDEL|ZREM|SET)$/.test(name))
        return state.fail && writes ? state.fail(outcomes) : outcomes
      },
      close: async () => undefined,
    },
  })
  const { token } = await store.login('ada')
  const { token: other } = await store.login('ada')
  return { store, token, other, state }
}

const lostReplies = (outcomes: Outcome[]) => outcomes.map(() => new Error('connection lost'))

/** Redis has executed all but the last command. */
const refusedLast = (outcomes: Outcome[]) => [
  ...outcomes.slice(0, -1),
  Object.assign(new Error('NOPERM'), { name: 'ReplyError' }),
]

type Call = (store: SessionStore, token: string, other: string) => Promise<unknown>

/** Calls that may be repeated, and the result of the call after one whose replies were lost. */
const repeatableCalls: [string, Call, unknown][] = [
  ['logout', (store, token) => store.logout(token), false],
  ['revokeSession', (store, token, other) => store.revokeSession(token, idOf(other)), false],
  ['logoutEverywhere', (store, token) => store.logoutEverywhere(token), 1],
  ['endUserSessions', (store) => store.endUserSessions('ada'), 0],
  [
    'userSessions',
    async (store, token) => {
      await server.redis.zadd('sessions:ada', 1, 'x'.repeat(32)) // an entry to remove
      return await store.userSessions(token)
    },
    { sessions: [expect.anything(), expect.anything()] },
  ],
]

test.each(repeatableCalls)('%s: a retry is safe', async (_, call, result) => {
  const { store, token, other, state } = await storeForThisTest()
  state.fail = lostReplies
  await expect(call(store, token, other)).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    retrySafe: true,
  })
  state.fail = undefined
  expect(await call(store, token, other)).toEqual(result)

  const next = await storeForThisTest()
  next.state.fail = refusedLast
  const again = () => call(next.store, next.token, next.other)
  await expect(again()).rejects.toMatchObject({ code: 'ONETRIP_REFUSED', retrySafe: true })
  next.state.fail = undefined
  await again()
})

test.each<[string, Call]>([
  ['login', (store) => store.login('ada')],
  ['loginGuest', (store) => store.loginGuest()],
  ['recordView', (store, token) => store.recordView(token, 'book')],
  ['countAttempts', (store) => store.countAttempts(['ada'], 60)],
])('%s: a retry is not safe after lost replies', async (_, call) => {
  const { store, token, other, state } = await storeForThisTest()
  state.fail = lostReplies
  await expect(call(store, token, other)).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    retrySafe: false,
  })
})
