import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import { Redis } from 'ioredis'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SessionStore } from '../src/index.ts'
import { sendPipeline } from '../src/redis/write-frame.ts'
import {
  adminForThisTest,
  gone,
  idOf,
  inMemory,
  newStore,
  outcomeOf,
  readyStore,
  SECRET,
  tokens,
  warningsOfThisTest,
} from './fixture.ts'

const server = redisOfThisFile()
beforeEach(() => server.redis.flushall())

const url = ({ socket }: { socket: string } = server) => `unix://${socket}`
const loggedIn = async (store: SessionStore) => (await store.login('ada')).token

/** Watches these sessions. Returns the tokens of those whose end was reported. */
async function watched(store: SessionStore, ...all: string[]): Promise<string[]> {
  const ended: string[] = []
  for (const token of all) await store.watchSession(token, () => ended.push(token))
  return ended
}

/** As if the message had been lost. */
const endSilently = (token: string, redis: Redis = server.redis) =>
  redis.hdel('login:', idOf(token))

const subscribers = async (): Promise<number> =>
  String(await server.redis.client('LIST', 'TYPE', 'PUBSUB'))
    .split('\n')
    .filter(Boolean).length

/** Each login has a time of its own, so that the oldest one is known. */
let now = Date.now()
const ticking = { ...tokens, clock: () => now++ }

type End = (store: SessionStore, tokens: { own: string; other: string }) => Promise<unknown>

/** Each way to end the session `other` of ada. */
const ends: [string, End][] = [
  ['logout', (store, { other }) => store.logout(other)],
  ['revokeSession', (store, { own, other }) => store.revokeSession(own, idOf(other))],
  ['logoutEverywhere', (store, { own }) => store.logoutEverywhere(own)],
  ['endUserSessions', (store) => store.endUserSessions('ada')],
  ['the maximum of a user', (store) => store.login('ada')],
  ['a login that takes it over', (store, { other }) => store.login('ada', { from: other })],
  ['the janitor', (store) => store.janitor({ maxSessions: 0 }).runOnce()],
]

test.each(ends)(
  'another process learns of the end by %s, which removes all of the session',
  async (_, end) => {
    const [store, elsewhere] = await Promise.all(
      [1, 2].map(() => readyStore({ redis: url(), maxSessionsPerUser: 2, tokens: ticking })),
    )
    if (!store || !elsewhere) throw new Error('no store')
    const [other, own] = [await loggedIn(store), await loggedIn(store)]
    await store.patch(other, { cart: ['book'] })
    await store.recordView(other, 'book')
    const told = await watched(elsewhere, other)
    await end(store, { own, other })
    await expect.poll(() => told).toEqual([other])
    expect((await server.redis.keys(`*:${idOf(other)}`)).length).toBe(0)
    await expect(store.patch(other, {})).rejects.toMatchObject(gone)
  },
)

test.skipIf(inMemory)('a logout that is cut anywhere is reported, or ended nothing', async () => {
  const store = await readyStore({ redis: url() })
  let sent = 0
  const cutting = newStore({
    sender: {
      name: 'cutting',
      async send({ commands }) {
        if (commands.length >= sent) await sendPipeline(server.redis, commands.slice(0, sent))
        throw new Error('cut')
      },
      close: async () => undefined,
    },
  })
  for (let isGone = false; !isGone; sent++) {
    const token = await loggedIn(store)
    const told = await watched(store, token)
    await expect(cutting.logout(token)).rejects.toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
    isGone = !(await server.redis.hexists('login:', idOf(token)))
    if (isGone) await expect.poll(() => told).toEqual([token])
  }
})

test('it is reported once: the end of the session or of the token', async () => {
  const store = await readyStore({
    redis: url(),
    tokens: { ...tokens, lifetimeSeconds: 60, clock: () => now },
  })
  const token = await loggedIn(store)
  const ended = await watched(store, token)
  const stop = await store.watchSession(token, () => ended.push('stopped'))
  stop()
  await store.logout(token)
  await expect.poll(() => ended).toEqual([token])
  expect(await outcomeOf(watched(store, token))).toBe(gone.code)
  expect(await outcomeOf(watched(store, 'no token'))).toBe('ONETRIP_INVALID_TOKEN')
  expect(await outcomeOf(store.watchSession(token, 'no function' as never))).toBe(
    'ONETRIP_WRONG_TYPE',
  )

  const expiring = await loggedIn(store)
  now += 59_990
  const expired = await watched(store, expiring)
  now += 10
  await expect.poll(() => expired).toEqual([expiring])
  const racing = await loggedIn(store)
  const raced: string[] = []
  const [outcome] = await Promise.all([
    outcomeOf(store.watchSession(racing, () => raced.push(racing))),
    store.logout(racing),
  ])
  // Either the check notices the end, or the message arrives.
  await expect.poll(() => outcome === gone.code || raced.includes(racing)).toBe(true)
})

test.skipIf(inMemory)('one connection serves all watches, as long as there is one', async () => {
  const store = await readyStore({ redis: url() })
  expect(await subscribers()).toBe(0)
  const [one, other] = [await loggedIn(store), await loggedIn(store)]
  const stop = await store.watchSession(one, () => undefined)
  const stopOther = await store.watchSession(other, () => undefined)
  expect(await subscribers()).toBe(1)
  stop()
  stop()
  expect(await subscribers()).toBe(1)
  stopOther()
  await expect.poll(subscribers).toBe(0)
  await watched(store, one)
  expect(await subscribers()).toBe(1)
  await store.close()
  await expect.poll(subscribers).toBe(0)
})

describe.skipIf(inMemory)('after a loss, sessions that ended meanwhile are reported', () => {
  test.each([
    ['url', () => ({ redis: url() })],
    ['options of ioredis', () => ({ redis: { path: server.socket } })],
  ])('of a subscription, with %s', async (_, options) => {
    const store = await readyStore(options())
    const [lost, alive] = [await loggedIn(store), await loggedIn(store)]
    const told = await watched(store, lost, alive)
    await endSilently(lost)
    await server.redis.client('KILL', 'TYPE', 'PUBSUB')
    await expect.poll(() => told).toEqual([lost])
    await store.logout(alive)
    await expect.poll(() => told).toEqual([lost, alive])
  })

  test('of a Redis that did not answer', async () => {
    const redis = await redisForThisTest()
    const store = await readyStore({ redis: url(redis), deadlineMs: 500 })
    const [lost, alive] = [await loggedIn(store), await loggedIn(store)]
    const told = await watched(store, lost, alive)
    await endSilently(lost, adminForThisTest(redis.socket))
    const connecting = vi.spyOn(Redis.prototype, 'connect')
    onTestFinished(() => connecting.mockRestore())
    redis.program.signal('SIGSTOP')
    await expect.poll(() => connecting.mock.calls.length).toBeGreaterThan(5) // it tries until it succeeds
    redis.program.signal('SIGCONT')
    await expect.poll(() => told).toEqual([lost])
  })

  test('of a proxy that has left the subscription on another server than the commands', async () => {
    const [old, current] = [await redisForThisTest(), await redisForThisTest()]
    const proxy = await sidecarForThisTest(old.socket)
    const store = await readyStore({ redis: `redis://127.0.0.1:${proxy.port}`, deadlineMs: 500 })
    const lost = await loggedIn(store)
    const told = await watched(store, lost)
    proxy.redirect(current.socket)
    await adminForThisTest(old.socket).client('KILL', 'TYPE', 'NORMAL') // the subscription stays
    await expect.poll(() => told).toEqual([lost])
    const token = await loggedIn(store)
    const again = await watched(store, token)
    await store.logout(token)
    await expect.poll(() => again).toEqual([token])
  })
})

test('if a callback fails, there is one warning a minute, and the others are still called', async () => {
  const store = await readyStore({ redis: url() })
  const warnings = warningsOfThisTest()
  const clock = vi.spyOn(performance, 'now')
  onTestFinished(() => clock.mockRestore())
  const endTwo = async () => {
    for (const _ of [1, 2]) {
      const token = await loggedIn(store)
      await store.watchSession(token, () => Promise.reject(new Error('mine')))
      const told = await watched(store, token)
      await store.logout(token)
      await expect.poll(() => told).toEqual([token])
    }
  }
  await endTwo()
  const warning = { code: 'ONETRIP_CALLBACK_FAILED' }
  expect(warnings).toMatchObject([warning])
  const now = performance.now()
  clock.mockImplementation(() => now + 60_000)
  await endTwo()
  expect(warnings).toMatchObject([warning, warning])
})

describe('watchSession rejects', () => {
  test('with a sender that cannot subscribe', async () => {
    const store = newStore({ sender: { name: 'own', send: vi.fn(), close: async () => undefined } })
    const rejected = expect(watched(store, store.tokens.issue())).rejects
    await rejected.toThrow('the sender own cannot subscribe')
  })

  test.skipIf(inMemory)(
    'without a connection, and without the permission; ready rejects without that to publish',
    async () => {
      const none = newStore({ redis: 'unix:///nowhere/redis.sock' })
      const token = none.tokens.issue()
      expect(await outcomeOf(watched(none, token))).toBe('ONETRIP_NOT_SENT')
      await server.redis.call('ACL', 'SETUSER', 'mute', 'on', `>${SECRET}`, '~*', '+@all')
      await server.redis.call('ACL', 'SETUSER', 'mute', 'resetchannels')
      const store = newStore({
        redis: { path: server.socket, username: 'mute', password: SECRET },
      })
      const refused = { code: 'ONETRIP_REFUSED', mayHaveWritten: false }
      await expect(watched(store, token)).rejects.toMatchObject(refused)
      await expect(store.ready()).rejects.toMatchObject(refused)
    },
  )
})
