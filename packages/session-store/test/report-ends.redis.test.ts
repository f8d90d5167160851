import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import { Redis } from 'ioredis'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SessionStore, SessionStoreOptions } from '../src/index.ts'
import { sendPipeline } from '../src/redis/frame.ts'
import {
  adminForThisTest,
  idOf,
  inMemory,
  newStore,
  readyStore,
  SECRET,
  tokens,
  warningsOfThisTest,
} from './fixture.ts'

const server = redisOfThisFile()
beforeEach(() => server.redis.flushall())

const url = ({ socket }: { socket: string } = server) => `unix://${socket}`

/** What a listener was told. */
function toldListener(held: string[] = []) {
  const told: string[] = []
  return {
    told,
    listener: {
      ended: (id: string) => void told.push(id),
      held: () => held,
      lost: () => void told.push('lost'),
      regained: () => void told.push('regained'),
    },
  }
}

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
  ['the janitor', (store) => store.janitor({ maxSessions: 0 }).runOnce()],
]

test.each(ends)('another process learns of the end by %s', async (_, end) => {
  const [store, elsewhere] = await Promise.all(
    [1, 2].map(() => readyStore({ redis: url(), maxSessionsPerUser: 2, tokens: ticking })),
  )
  if (!store || !elsewhere) throw new Error('no store')
  const { told, listener } = toldListener()
  await elsewhere.onSessionEnded(listener)
  const { token: other } = await store.login('ada')
  const { token: own } = await store.login('ada')
  await end(store, { own, other })
  await expect.poll(() => told).toContain(idOf(other))
})

test.skipIf(inMemory)('a logout that is cut anywhere is reported, or ended nothing', async () => {
  const store = await readyStore({ redis: url() })
  const { told, listener } = toldListener()
  await store.onSessionEnded(listener)
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
  for (let gone = false; !gone; sent++) {
    const { token } = await store.login('ada')
    await expect(cutting.logout(token)).rejects.toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
    gone = !(await server.redis.hexists('login:', idOf(token)))
    if (gone) await expect.poll(() => told).toContain(idOf(token))
  }
})

test('a login that takes over a guest session is reported', async () => {
  const store = await readyStore({ redis: url() })
  const { told, listener } = toldListener()
  await store.onSessionEnded(listener)
  const { token: guest } = await store.loginGuest()
  await store.login('ada', { from: guest })
  await expect.poll(() => told).toEqual([idOf(guest)])
})

const senders: [string, (socket: string) => Partial<SessionStoreOptions>][] = [
  ['url', (socket) => ({ redis: url({ socket }) })],
  ['options of ioredis', (socket) => ({ redis: { path: socket } })],
]

describe.skipIf(inMemory).each(senders)('with %s', (_, optionsOf) => {
  test('one connection serves all listeners, as long as there is one', async () => {
    const store = await readyStore(optionsOf(server.socket))
    expect(await subscribers()).toBe(0)
    const [one, other] = [toldListener(), toldListener()]
    const stop = await store.onSessionEnded(one.listener)
    const stopOther = await store.onSessionEnded(other.listener)
    expect(await subscribers()).toBe(1)
    stop()
    stop()
    const { token } = await store.login('ada')
    await store.logout(token)
    await expect.poll(() => other.told).toEqual([idOf(token)])
    expect(one.told).toEqual([])
    stopOther()
    await expect.poll(subscribers).toBe(0)
    await store.onSessionEnded(one.listener)
    expect(await subscribers()).toBe(1)
    await store.close()
    await expect.poll(subscribers).toBe(0)
  })

  test('after a lost subscription, sessions that ended meanwhile are reported', async () => {
    const store = await readyStore(optionsOf(server.socket))
    const [gone, alive] = [await store.login('ada'), await store.login('ada')]
    const { told, listener } = toldListener([gone.token, alive.token].map(idOf))
    await store.onSessionEnded({
      ...listener,
      lost() {
        listener.lost()
        // As if the message had been lost: nobody tells this listener.
        void server.redis.hdel('login:', idOf(gone.token))
      },
    })
    await server.redis.client('KILL', 'TYPE', 'PUBSUB')
    await expect.poll(() => told).toEqual(['lost', 'regained', idOf(gone.token)])
    await store.logout(alive.token)
    await expect.poll(() => told.at(-1)).toBe(idOf(alive.token))
  })
})

test.skipIf(inMemory)(
  'a Redis that does not answer counts as lost; held sessions are checked when it answers again',
  async () => {
    const redis = await redisForThisTest()
    const store = await readyStore({ redis: url(redis), deadlineMs: 500 })
    const held = idOf((await store.login('ada')).token)
    const { told, listener } = toldListener([held, 'unknown'])
    await store.onSessionEnded(listener)
    redis.program.signal('SIGSTOP')
    await expect.poll(() => told).toEqual(['lost'])
    redis.program.signal('SIGCONT')
    await expect.poll(() => told.slice(-2)).toEqual(['regained', 'unknown'])
  },
)

test.skipIf(inMemory)(
  'a subscription that a proxy has left on another server than the commands is replaced',
  async () => {
    const [old, current] = [await redisForThisTest(), await redisForThisTest()]
    const proxy = await sidecarForThisTest(old.socket)
    const store = await readyStore({ redis: `redis://127.0.0.1:${proxy.port}`, deadlineMs: 500 })
    const { told, listener } = toldListener(['held'])
    await store.onSessionEnded(listener)
    proxy.redirect(current.socket)
    await adminForThisTest(old.socket).client('KILL', 'TYPE', 'NORMAL') // the subscription stays
    await expect.poll(() => told).toEqual(['lost', 'regained', 'held'])
    const { token } = await store.login('ada')
    await store.logout(token)
    await expect.poll(() => told.at(-1)).toBe(idOf(token))
  },
)

test.skipIf(inMemory)(
  'a listener learns that there is no subscription, if it is added during an outage',
  async () => {
    const redis = await redisForThisTest()
    const store = await readyStore({ redis: url(redis) })
    const [first, second] = [toldListener(), toldListener()]
    await store.onSessionEnded(first.listener)
    redis.program.signal('SIGKILL')
    await expect.poll(() => first.told).toContain('lost')
    const connecting = vi.spyOn(Redis.prototype, 'connect')
    onTestFinished(() => connecting.mockRestore())
    await store.onSessionEnded(second.listener)
    await expect.poll(() => connecting.mock.calls.length, { timeout: 10_000 }).toBeGreaterThan(5)
    for (const { told } of [first, second]) expect(told).toEqual(['lost']) // once, not with each attempt
  },
)

test.skipIf(inMemory)('a listener whose held throws keeps no other from its check', async () => {
  const store = await readyStore({ redis: url() })
  const warnings = warningsOfThisTest()
  const { told, listener } = toldListener(['unknown'])
  await store.onSessionEnded({
    ended: () => undefined,
    held() {
      throw new Error('mine')
    },
  })
  await store.onSessionEnded(listener)
  await server.redis.client('KILL', 'TYPE', 'PUBSUB')
  await expect.poll(() => told).toEqual(['lost', 'regained', 'unknown'])
  expect(warnings).toMatchObject([{ code: 'ONETRIP_CALLBACK_FAILED' }])
})

test('if a listener fails, there is one warning a minute, and the others are still called', async () => {
  const store = await readyStore({ redis: url() })
  const warnings = warningsOfThisTest()
  const { told, listener } = toldListener()
  const clock = vi.spyOn(performance, 'now')
  onTestFinished(() => clock.mockRestore())
  await store.onSessionEnded({ ended: () => Promise.reject(new Error('mine')) })
  await store.onSessionEnded(listener)
  const endTwo = async () => {
    for (const _ of [1, 2]) {
      const { token } = await store.login('ada')
      await store.logout(token)
      await expect.poll(() => told.at(-1)).toBe(idOf(token))
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

describe('onSessionEnded rejects', () => {
  test('anything that is no listener', async () => {
    const store = newStore({ redis: url() })
    const held = [] as never
    await expect(store.onSessionEnded({ ended: vi.fn(), held })).rejects.toThrow('functions held')
    await expect(store.onSessionEnded({} as never)).rejects.toThrow(
      'the listener needs the functions ended',
    )
  })

  test('a sender that cannot subscribe', async () => {
    const sender = { name: 'own', send: vi.fn(), close: async () => undefined }
    const store = newStore({ sender })
    const rejected = expect(store.onSessionEnded({ ended: vi.fn() })).rejects
    await rejected.toThrow('the sender own cannot subscribe')
  })

  test.skipIf(inMemory)(
    'without a connection, and without the permission; ready rejects without that to publish',
    async () => {
      const none = newStore({ redis: 'unix:///nowhere/redis.sock' })
      await expect(none.onSessionEnded({ ended: vi.fn() })).rejects.toMatchObject({
        code: 'ONETRIP_NOT_SENT',
      })
      await server.redis.call('ACL', 'SETUSER', 'mute', 'on', `>${SECRET}`, '~*', '+@all')
      await server.redis.call('ACL', 'SETUSER', 'mute', 'resetchannels')
      const store = newStore({
        redis: { path: server.socket, username: 'mute', password: SECRET },
      })
      const refused = { code: 'ONETRIP_REFUSED', mayHaveWritten: false }
      await expect(store.onSessionEnded({ ended: vi.fn() })).rejects.toMatchObject(refused)
      await expect(store.ready()).rejects.toMatchObject(refused)
    },
  )
})
