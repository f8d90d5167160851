import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis, type RedisOptions } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { articleKeys as keys, type StoreWarning } from '../src/index.ts'
import { isIoredis5 } from '../src/redis/ioredis-version.ts'
import { pooled } from '../src/redis/pool.ts'
import {
  adminForThisTest,
  idOf,
  newStore,
  outcomeOf,
  readyStore,
  tokens,
  warningsOfThisTest,
} from './fixture.ts'
import { anyClock } from './retention-fixture.ts'

const server = redisOfThisFile()

type Options = Omit<RedisOptions, 'replyMapping'>

/** Calls everything that parses a number, a score, a list or a text. */
async function everything(options: Options = {}) {
  const store = await readyStore({
    redis: { path: server.socket, ...options },
    tokens: { ...tokens, clock: () => 1.7e12 },
  })
  const { token } = await store.login('ada')
  const other = await store.login('ada')
  const views = await Promise.all([
    store.recordView(token, 'book'),
    store.recordView(other.token, 'book'),
  ])
  await store.patch(token, { theme: 'dark', ['__proto__']: 1 })
  const guest = await store.loginGuest()
  await store.patch(guest.token, { cart: ['book'], ['__proto__']: 1 })
  const fromGuest = await store.login('eve', { from: guest.token })
  return {
    views,
    data: await store.data(fromGuest.token),
    recent: await store.recentSessions(),
    viewed: await store.viewedItems(token),
    popular: await store.popularItems(),
    listed: (await store.userSessions(token)).sessions.length,
    attempts: (await store.countAttempts(['a', 'b'], 60)).counts,
    hash: await store.run({
      commands: [['HGETALL', keys.data(idOf(token))]],
      readOnly: true,
      read: (replies) => replies,
    }),
    pipelined: await adminForThisTest(server.socket).call('HGETALL', keys.data(idOf(token))),
    run: await store.janitor({ ...anyClock, maxSessions: 0 }).runOnce(),
    left: await store.recentSessions(),
  }
}

const supported: Options[] = [
  { protocol: 2 },
  { protocol: 3 },
  { enableAutoPipelining: true, socketTimeout: 30_000, blockingTimeout: 30_000 },
  ...(isIoredis5 ? [] : [{ enableReadyCheck: false }]),
  { connectionName: 'mine', disableClientInfo: true },
  { commandTimeout: undefined, stringNumbers: false, reconnectOnError: null, monitor: false },
]

test.each(supported)('options of ioredis: %j', async (options) => {
  await server.redis.flushall()
  const { hash, pipelined, ...result } = await everything(options)
  expect(result).toMatchObject({
    views: [
      { user: 'ada', views: 1 },
      { user: 'ada', views: 2 },
    ],
    data: { fields: { cart: ['book'], ['__proto__']: 1 }, version: 1 },
    recent: [{ lastSeenAt: 1.7e12 }, {}, {}],
    viewed: [{ item: 'book' }],
    popular: [{ item: 'book', views: 2 }],
    listed: 2,
    attempts: [1, 1],
    run: { worked: true, evicted: 3 },
    left: [],
  })
  expect(hash).toEqual([pipelined])
})

test('a pool takes turns, and prefers the connection with the least in flight', async () => {
  const frames = vi.spyOn(Redis.prototype, 'sendCommand')
  onTestFinished(() => frames.mockRestore())
  const { contexts } = frames.mock
  // Without batching, each call is a frame.
  const options = { redis: `unix://${server.socket}`, poolSize: 2, deadlineMs: 20_000 }
  const store = await readyStore({ sender: pooled(options) })
  await expect.poll(() => store.info.ready).toBe(2)
  const clients = [...new Set(contexts)] as Redis[]
  const before = contexts.length
  const counts = () =>
    clients.map((client) => contexts.slice(before).filter((one) => one === client).length)
  for (let call = 0; call < 4; call++) await store.popularItems()
  expect(counts()).toEqual([2, 2])
  clients[0]?.stream.pause() // its replies stay unread
  const two = [store.popularItems(), store.popularItems()]
  await Promise.race(two)
  for (let call = 0; call < 4; call++) await store.popularItems()
  expect(counts()).toEqual([3, 7])
  clients[0]?.stream.resume()
  await Promise.all(two)
})

test('a connection that ioredis has given up, as after some failovers, is opened again', async () => {
  const connecting = vi.spyOn(Redis.prototype, 'connect')
  onTestFinished(() => connecting.mockRestore())
  const store = await readyStore({ redis: `unix://${server.socket}` })
  const [client] = connecting.mock.contexts as Redis[]
  client?.disconnect()
  await expect.poll(() => client?.status).toBe('end')
  await expect.poll(() => outcomeOf(store.popularItems())).toBe('ok')
})

test.each<[Options, string]>([
  [{ commandTimeout: 5 }, 'commandTimeout'],
  [{ stringNumbers: true }, 'stringNumbers'],
  [{ reconnectOnError: () => 2 as const }, 'reconnectOnError'],
  [{ monitor: true }, 'monitor'],
  [{ keyPrefix: 'shop:' }, 'keyPrefix'],
])('options of ioredis that are refused: %j', (options, words) => {
  const create = () => newStore({ redis: { path: server.socket, ...options } })
  expect(create).toThrow(TypeError)
  expect(create).toThrow(words)
})

const framesOff = { code: 'ONETRIP_FRAMES_OFF' }

/** Imports the package as if this version of ioredis were installed. */
async function importWith(version: string): Promise<typeof import('../src/index.ts')> {
  vi.resetModules()
  vi.doMock('ioredis/package.json', () => ({ default: { version } }))
  onTestFinished(() => {
    vi.doUnmock('ioredis/package.json')
    vi.resetModules()
  })
  return await import('../src/index.ts')
}

test('a batch is sent as a frame with a verified version, otherwise with pipeline() and a warning', async () => {
  const pipeline = vi.spyOn(Redis.prototype, 'pipeline')
  onTestFinished(() => pipeline.mockRestore())
  const warnings = warningsOfThisTest()
  await everything()
  expect(pipeline).not.toHaveBeenCalled()
  expect(warnings).toEqual([])

  const { SessionStore, warningChannel } = await importWith('6.99.0')
  const published: StoreWarning[] = []
  warningChannel.subscribe((warning) => published.push(warning as StoreWarning))
  const options = {
    redis: `unix://${server.socket}`,
    tokens,
    janitor: 'elsewhere',
  } as const
  const store = new SessionStore(options)
  onTestFinished(() => store.close())
  await store.ready()
  const { token } = await store.login('ada')
  expect(await store.recordView(token, 'book')).toMatchObject({ user: 'ada' })
  expect(pipeline).toHaveBeenCalled()
  expect(published).toMatchObject([framesOff]) // once
  expect(published[0]?.message).toMatch(/6\.99\.0.*Install ioredis@6\.\d+\.\d+,/)
})
