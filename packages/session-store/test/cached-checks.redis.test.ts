import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { roundTripChannel, type SessionStore } from '../src/core/index.ts'
import { gone, idOf, messagesOf, newStore, outcomeOf, readyStore, tokens } from './fixture.ts'

const server = redisOfThisFile()
beforeEach(() => server.redis.flushall())

const caching = (options = {}, { socket }: { socket: string } = server) =>
  readyStore({ url: `unix://${socket}`, cachedChecks: 1_000, ...options })

/** The number of round trips of a call. */
function countTrips() {
  const trips = messagesOf(roundTripChannel)
  return async (call: () => Promise<unknown>): Promise<number> => {
    trips.length = 0
    await call()
    return trips.length
  }
}

test('the second check of a session takes no round trip, and neither does a touch', async () => {
  const store = await caching()
  const { token } = await store.login('ada')
  const tripsOf = countTrips()
  expect(await tripsOf(() => store.checkToken(token))).toBe(1)
  expect(await tripsOf(() => store.checkToken(token))).toBe(0)
  expect(await tripsOf(() => store.touch(token, 10))).toBe(0)
  expect(await tripsOf(() => store.checkToken(token, { data: true }))).toBe(1)
  const first = await store.checkToken(token)
  Object.assign(first, { user: 'eve' })
  expect(await store.checkToken(token)).toMatchObject({ user: 'ada' })
})

type End = (store: SessionStore, tokens: { own: string; other: string }) => Promise<unknown>

const ends: [string, End][] = [
  ['logout', (store, { other }) => store.logout(other)],
  ['revokeSession', (store, { own, other }) => store.revokeSession(own, idOf(other))],
  ['endUserSessions', (store) => store.endUserSessions('ada')],
  ['eraseUser', (store) => store.eraseUser('ada')],
  ['the maximum of a user', (store) => store.login('ada')],
]

describe.each(ends)('after %s', (_, end) => {
  test('the same process rejects the session at once, another one soon', async () => {
    let ms = Date.now()
    const clock = () => ms++ // logins of the same millisecond have no order
    const options = { maxSessionsPerUser: 2, tokens: { ...tokens, clock } }
    const [store, elsewhere] = [await caching(options), await caching(options)]
    const { token: other } = await store.login('ada')
    const { token: own } = await store.login('ada')
    for (const one of [store, elsewhere]) await one.checkToken(other)
    await end(store, { own, other })
    await expect(store.checkToken(other)).rejects.toMatchObject(gone)
    await expect.poll(() => outcomeOf(elsewhere.checkToken(other))).toBe(gone.code)
  })
})

test('a guest session that a login took over is rejected at once', async () => {
  const store = await caching()
  const { token: guest } = await store.loginGuest()
  await store.checkToken(guest)
  await store.login('ada', { from: guest })
  await expect(store.checkToken(guest)).rejects.toMatchObject(gone)
})

test('a session that ends while it is checked is not kept', async () => {
  const store = await caching()
  const { token } = await store.login('ada')
  await Promise.allSettled(
    Array.from({ length: 50 }, (_, at) =>
      at === 25 ? store.logout(token) : store.checkToken(token),
    ),
  )
  await expect(store.checkToken(token)).rejects.toMatchObject(gone)
})

test('an idle session is rejected, unless another process has used it', async () => {
  let now = Date.now()
  const tokens = { secrets: ['s'.repeat(32)], clock: () => now }
  const options = { tokens, idleSeconds: 60 }
  const [store, elsewhere] = [await caching(options), await caching(options)]
  const { token } = await store.login('ada')
  await store.checkToken(token)
  now += 50_000
  await elsewhere.recordView(token, 'book')
  now += 50_000
  expect(await store.checkToken(token)).toMatchObject({ lastSeenAt: now - 50_000 })
  now += 61_000
  await expect(store.checkToken(token)).rejects.toMatchObject(gone)
})

test('while Redis does not answer, nothing comes from the cache for longer than a second and the deadline', async () => {
  const redis = await redisForThisTest()
  const store = await caching({ deadlineMs: 500 }, redis)
  const { token } = await store.login('ada')
  await store.checkToken(token)
  redis.program.signal('SIGSTOP')
  const stoppedAt = performance.now()
  await expect.poll(() => outcomeOf(store.checkToken(token))).toBe('ONETRIP_OUTCOME_UNKNOWN')
  expect(performance.now() - stoppedAt).toBeGreaterThan(100)
  redis.program.signal('SIGCONT')
  await expect.poll(() => outcomeOf(store.checkToken(token))).toBe('ok')
})

test('a session is read again after a minute, even if its end was not published', async () => {
  const store = await caching()
  const { token } = await store.login('ada')
  await store.checkToken(token)
  await server.redis.hdel('login:', idOf(token))
  expect(await outcomeOf(store.checkToken(token))).toBe('ok')
  const later = performance.now() + 61_000
  vi.spyOn(performance, 'now').mockImplementation(() => later)
  onTestFinished(() => void vi.restoreAllMocks())
  expect(await outcomeOf(store.checkToken(token))).toBe(gone.code)
})

test('a lost subscription empties the cache', async () => {
  const store = await caching()
  const { token } = await store.login('ada')
  await store.checkToken(token)
  await server.redis.hdel('login:', idOf(token)) // without a message
  expect(await outcomeOf(store.checkToken(token))).toBe('ok')
  await server.redis.client('KILL', 'TYPE', 'PUBSUB')
  await expect.poll(() => outcomeOf(store.checkToken(token))).toBe(gone.code)
})

test('a start without the permission to subscribe is rejected', async () => {
  await server.redis.call(
    'ACL',
    'SETUSER',
    'shop',
    'on',
    'nopass',
    '~*',
    '&*',
    '+@all',
    '-subscribe',
  )
  const url = `unix://shop:any@localhost${server.socket}`
  await expect(newStore({ url, cachedChecks: 10 }).ready()).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
  })
})

test('the option is rejected where it could keep ended sessions', async () => {
  const sender = { name: 'own', send: vi.fn(), close: async () => undefined }
  expect(() => newStore({ sender, cachedChecks: 1 })).toThrow('the sender own')
  expect(() => newStore({ url: 'redis://localhost', cachedChecks: -1 })).toThrow('cachedChecks')
})
