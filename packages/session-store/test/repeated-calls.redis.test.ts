import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { externalSessions } from '../src/adapters/external-sessions.ts'
import { createSessionStore, type Outcome, type SessionStore } from '../src/core/index.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

/** What happens to the replies to a list of commands that writes, after Redis has executed it. */
let fail: ((outcomes: Outcome[]) => Outcome[]) | undefined
let store: SessionStore

beforeAll(() => {
  store = createSessionStore({
    sender: {
      name: 'own',
      async send({ commands }) {
        const outcomes = await Promise.all(
          commands.map(([name, ...args]) => server.redis.call(name, ...args) as Promise<Outcome>),
        )
        const writes = commands.some(([name]) => /^(?:ZADD|HDEL|ZREM|SET)$/.test(name))
        return fail && writes ? fail(outcomes) : outcomes
      },
      close: async () => undefined,
    },
    tokens,
    janitor: 'elsewhere',
  })
})
afterEach(() => {
  fail = undefined
})
afterAll(() => store.close())

const lostReplies = (outcomes: Outcome[]) => outcomes.map(() => new Error('connection lost'))

/** Redis has executed all but the last command. */
const refusedLast = (outcomes: Outcome[]) => [
  ...outcomes.slice(0, -1),
  Object.assign(new Error('NOPERM'), { name: 'ReplyError' }),
]

/** Calls that may be repeated, and the result of the call after one whose replies were lost. */
const repeatableCalls: [string, (sessions: string[]) => Promise<unknown>, unknown][] = [
  ['logout', ([token = '']) => store.logout(token), false],
  [
    'revokeSession',
    ([token = '', other = '']) => store.revokeSession(token, other.slice(0, 32)),
    false,
  ],
  ['logoutEverywhere', ([token = '']) => store.logoutEverywhere(token), 1],
  ['endUserSessions', () => store.endUserSessions('ada'), 0],
  ['eraseUser', () => store.eraseUser('ada'), 0],
  ['external.end', () => externalSessions(store).end('old'), false],
  ['touch', ([token = '']) => store.touch(token), { user: 'ada' }],
]

test.each(repeatableCalls)('%s: a retry is safe after lost replies', async (_, call, result) => {
  const sessions = [await store.login('ada'), await store.login('ada')].map(({ token }) => token)
  await externalSessions(store).put('old', {})
  fail = lostReplies
  await expect(call(sessions)).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    retrySafe: true,
  })
  fail = undefined
  const again = await call(sessions)
  if (typeof result === 'object') expect(again).toMatchObject(result as object)
  else expect(again).toBe(result)
})

test.each(repeatableCalls)('%s: a retry is safe if a command was refused', async (_, call) => {
  const sessions = [await store.login('ada'), await store.login('ada')].map(({ token }) => token)
  await externalSessions(store).put('old', {})
  fail = refusedLast
  await expect(call(sessions)).rejects.toMatchObject({ code: 'ONETRIP_REFUSED', retrySafe: true })
  fail = undefined
  await call(sessions)
})

test.each<[string, (token: string) => Promise<unknown>]>([
  ['login', () => store.login('ada')],
  ['loginGuest', () => store.loginGuest()],
  ['recordView', (token) => store.recordView(token, 'book')],
  ['countAttempts', () => store.countAttempts(['ada'], 60)],
])('%s: a retry is not safe after lost replies', async (_, call) => {
  const { token } = await store.login('ada')
  fail = lostReplies
  await expect(call(token)).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    retrySafe: false,
  })
})

test('userSessions: a retry is safe if the replies to the removal of old entries were lost', async () => {
  const { token } = await store.login('ada')
  await server.redis.zadd('sessions:ada', 1, 'x'.repeat(32))
  fail = lostReplies
  await expect(store.userSessions(token)).rejects.toMatchObject({ retrySafe: true })
  fail = undefined
  expect((await store.userSessions(token)).sessions).toHaveLength(1)
})
