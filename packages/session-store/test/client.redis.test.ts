import { createRequire } from 'node:module'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { clusterSender, safeClusterOptions } from '../src/cluster/index.ts'
import { isIoredis5 } from '../src/core/connections/ioredis-version.ts'
import {
  createSessionStore,
  type StoreWarning,
  safeRedisOptions,
  warningChannel,
} from '../src/core/index.ts'
import { anyClock } from './retention-fixture.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

type Options = Omit<RedisOptions, 'replyMapping'>

function clientForThisTest(options: Options, path = server.socket): Redis {
  const client = new Redis(path, { ...safeRedisOptions, ...options, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  return client
}

/** Collects the warnings of a call. */
function warningsOf(call: () => void): StoreWarning[] {
  const warnings: StoreWarning[] = []
  const listen = (warning: unknown) => void warnings.push(warning as StoreWarning)
  warningChannel.subscribe(listen)
  try {
    call()
  } finally {
    warningChannel.unsubscribe(listen)
  }
  return warnings
}

/** Calls everything that parses a number, a score, a list or a text. */
async function everything(client: Redis, strategy: 'batch' | 'pipeline') {
  const store = createSessionStore({
    client,
    strategy,
    tokens: { ...tokens, clock: () => 1.7e12 },
    deadlineMs: 20_000,
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  await store.ready()
  const { token } = await store.login('ada')
  const other = await store.login('ada')
  const views = await Promise.all([
    store.recordView(token, 'book'),
    store.recordView(other.token, 'book'),
  ])
  const guest = await store.loginGuest()
  await store.patch(guest.token, { cart: ['book'], ['__proto__']: 1 })
  const fromGuest = await store.login('eve', { from: guest.token })
  return {
    views,
    data: await store.data(fromGuest.token),
    export: (await store.exportUser('eve')).sessions.map(({ data }) => data),
    erased: await store.eraseUser('eve'),
    session: await store.checkToken(token),
    recent: await store.recentSessions(),
    viewed: await store.viewedItems(token),
    popular: await store.popularItems(),
    listed: (await store.userSessions(token)).sessions.length,
    attempts: (await store.countAttempts(['a', 'b'], 60)).counts,
    loggedOut: await store.logout(other.token),
    run: await store.janitor({ ...anyClock, maxSessions: 0 }).runOnce(),
    left: await store.recentSessions(),
  }
}

const supported: Options[] = [
  { protocol: 2 },
  { protocol: 3 },
  { replyMapping: 'resp3' } as Options,
  { enableAutoPipelining: true },
  { socketTimeout: 30_000 },
  { blockingTimeout: 30_000 },
  ...(isIoredis5 ? [] : [{ enableReadyCheck: false }]),
  { connectionName: 'mine', disableClientInfo: true },
  { commandTimeout: undefined, stringNumbers: false, reconnectOnError: null, monitor: false },
]

test.each(supported)('a client with %j is supported', async (options) => {
  for (const strategy of ['batch', 'pipeline'] as const) {
    await server.redis.flushall()
    expect(await everything(clientForThisTest(options), strategy)).toMatchObject({
      views: [
        { user: 'ada', views: 1 },
        { user: 'ada', views: 2 },
      ],
      data: { fields: { cart: ['book'], ['__proto__']: 1 }, version: 1 },
      export: [{ cart: ['book'], ['__proto__']: 1 }],
      erased: 1,
      session: { user: 'ada', lastSeenAt: 1.7e12 },
      recent: [{ user: 'ada', lastSeenAt: 1.7e12 }, { user: 'ada' }],
      viewed: [{ item: 'book' }],
      popular: [{ item: 'book', views: 2 }],
      listed: 2,
      attempts: [1, 1],
      loggedOut: true,
      run: { worked: true, evicted: 1 },
      left: [],
    })
  }
})

test.each(supported)('with %j, batch and pipeline return the same replies', async (options) => {
  const client = clientForThisTest(options)
  await server.redis.flushall()
  await server.redis.hset('hash', { a: 'text', ['__proto__']: 'own' })
  const [batch, pipeline] = await Promise.all(
    (['batch', 'pipeline'] as const).map(async (strategy) => {
      const store = createSessionStore({ client, strategy, tokens, janitor: 'elsewhere' })
      onTestFinished(() => store.close())
      await store.ready()
      const commands = [['HGETALL', 'hash'] as const]
      return await store.run({ commands, readOnly: true, read: (replies) => replies })
    }),
  )
  expect(batch).toEqual(pipeline)
})

test.each([
  [{ commandTimeout: 1_000 }, 'commandTimeout (the store has its own deadline, deadlineMs)'],
  [{ commandTimeout: 0 }, 'commandTimeout'],
  [{ stringNumbers: true }, 'stringNumbers'],
  [{ reconnectOnError: () => 2 as const }, 'reconnectOnError'],
  [{ monitor: true }, 'monitor'],
  [{ keyPrefix: 'shop:' }, "keyPrefix (use the store's option prefix: the keys are the same)"],
  [{ enableOfflineQueue: true }, 'enableOfflineQueue: false'],
  [{ autoResendUnfulfilledCommands: true }, 'autoResendUnfulfilledCommands: false'],
  [{ maxRetriesPerRequest: null }, 'maxRetriesPerRequest: 0'],
])('a client with %j is refused, and the error names the option', (options, words) => {
  const client = clientForThisTest(options)
  expect(() => createSessionStore({ client, tokens })).toThrow(TypeError)
  expect(() => createSessionStore({ client, tokens })).toThrow(words)
})

test.each([
  [{ keyPrefix: 'shop:' }, 'keyPrefix'],
  [{ enableAutoPipelining: true }, 'enableAutoPipelining'],
  [{ scaleReads: 'slave' as const }, 'scaleReads'],
  [{ redisOptions: { commandTimeout: 1_000 } }, 'commandTimeout'],
  [{ redisOptions: { stringNumbers: true } }, 'stringNumbers'],
  [{ redisOptions: { db: 5 } }, 'db (a cluster has only database 0)'],
  [{ retryDelayOnFailover: 100 }, 'retryDelayOnFailover: 0'],
])('a cluster with %j is refused, and the error names the option', (options, words) => {
  const client = new Cluster([{ host: '127.0.0.1', port: 1 }], {
    ...safeClusterOptions,
    lazyConnect: true,
    ...(options as object),
  })
  onTestFinished(() => client.disconnect())
  expect(() => clusterSender({ client })).toThrow(words)
})

/** Loads ioredis once more. */
function otherIoredis(): typeof import('ioredis') {
  const require = createRequire(import.meta.url)
  for (const path of Object.keys(require.cache)) {
    if (/\/ioredis\//.test(path)) delete require.cache[path]
  }
  return require('ioredis')
}

test('a client of another copy of ioredis is used through its public interface', async () => {
  const client = new (otherIoredis().Redis)(server.socket, {
    ...safeRedisOptions,
    lazyConnect: true,
  })
  onTestFinished(() => client.disconnect())
  expect(client).not.toBeInstanceOf(Redis)
  const pipeline = vi.spyOn(client, 'pipeline')
  expect(await everything(client, 'batch')).toMatchObject({ loggedOut: true, left: [] })
  expect(pipeline).toHaveBeenCalled()
})

/** Imports the package as if this version of ioredis were installed. */
async function importWith(version: string): Promise<typeof import('../src/core/index.ts')> {
  vi.resetModules()
  vi.doMock('ioredis/package.json', () => ({ default: { version } }))
  onTestFinished(() => {
    vi.doUnmock('ioredis/package.json')
    vi.resetModules()
  })
  return await import('../src/core/index.ts')
}

test('a store that cannot be created leaves no listener on the client', () => {
  const client = clientForThisTest({})
  const listeners = () => client.eventNames().map((event) => [event, client.listenerCount(event)])
  const before = listeners()
  expect(() => createSessionStore({ client, tokens, janitor: { intervalSeconds: 0 } })).toThrow(
    'intervalSeconds',
  )
  expect(listeners()).toEqual(before)
})

test('a batch is sent as a frame with a verified version, otherwise with pipeline()', async () => {
  const pipeline = vi.spyOn(Redis.prototype, 'pipeline')
  onTestFinished(() => pipeline.mockRestore())
  await everything(clientForThisTest({}), 'batch')
  expect(pipeline).not.toHaveBeenCalled()

  const { createSessionStore } = await importWith('6.99.0')
  const store = createSessionStore({ client: clientForThisTest({}), tokens, janitor: 'elsewhere' })
  onTestFinished(() => store.close())
  await store.ready()
  const { token } = await store.login('ada')
  expect(await store.recordView(token, 'book')).toMatchObject({ user: 'ada' })
  expect(pipeline).toHaveBeenCalled()
})

test.each([
  ['6.99.0', /Install ioredis@6\.\d+\.\d+,/],
  ['5.99.0', /Install ioredis@5\.\d+\.\d+,/],
])('a store warns once if frames are not verified with ioredis %s', async (version, wanted) => {
  const { createSessionStore } = await importWith(version)
  const at = { url: `unix://${server.socket}`, tokens, janitor: 'elsewhere' } as const
  const warnings = warningsOf(() => {
    const store = createSessionStore(at)
    onTestFinished(() => store.close())
  })
  expect(warnings).toMatchObject([{ code: 'ONETRIP_FRAMES_OFF' }])
  for (const words of [`ioredis ${version}`, '5.11.1', '6.0.0', wanted]) {
    expect(warnings[0]?.message).toMatch(words)
  }
})

test('a store warns if its client was created by another copy of ioredis', () => {
  const client = new (otherIoredis().Redis)({ ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  const warnings = warningsOf(() => {
    const store = createSessionStore({ client, tokens, janitor: 'elsewhere' })
    onTestFinished(() => store.close())
  })
  expect(warnings).toMatchObject([
    { code: 'ONETRIP_FRAMES_OFF', message: expect.stringContaining('another copy of ioredis') },
  ])
})

test('a store that uses frames, or would not use them, does not warn', async () => {
  const url = `unix://${server.socket}`
  const used = [{ url }, { client: clientForThisTest({}) }]
  const others = [{ url, strategy: 'pipeline' as const }]
  const unverified = await importWith('6.99.0')
  expect(
    warningsOf(() => {
      for (const options of [...used, ...others]) {
        const store = createSessionStore({ ...options, tokens, janitor: 'elsewhere' })
        onTestFinished(() => store.close())
      }
      for (const options of [
        ...others,
        { sender: { name: 'own', send: async () => [], close: async () => {} } },
      ]) {
        const store = unverified.createSessionStore({ ...options, tokens, janitor: 'elsewhere' })
        onTestFinished(() => store.close())
      }
      expect(() => unverified.createSessionStore({ url, tokens: { secrets: [] } })).toThrow(
        TypeError,
      )
    }),
  ).toEqual([])
})

test.runIf(isIoredis5)('ioredis 5 without ready check is refused', () => {
  const client = clientForThisTest({ enableReadyCheck: false })
  expect(() => createSessionStore({ client, tokens })).toThrow('enableReadyCheck (without it')
})
