import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { isIoredis5 } from '../src/core/connections/ioredis-version.ts'
import {
  createSessionStore,
  type SessionStore,
  type SessionStoreOptions,
  type StrategyName,
  safeRedisOptions,
  strategyNames,
} from '../src/core/index.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

function storeForThisTest(options: Partial<SessionStoreOptions>) {
  const store = createSessionStore({ tokens, deadlineMs: 20_000, ...options })
  onTestFinished(() => store.close())
  return store
}

const databases = async () => (await server.redis.info('keyspace')).match(/db\d+/g) ?? []

/** How `ready` fails. The reason is known only after Redis has replied. */
const failureOf = (store: SessionStore) =>
  store.ready(300).then(
    () => 'ready',
    (error: unknown) => error,
  )

const refusal = (database: number, why: string) => ({
  code: 'ONETRIP_NOT_SENT',
  cause: {
    message: expect.stringMatching(`^Redis refused to select database ${database}: ${why}`),
  },
})

test.each(strategyNames)('%s: all keys are in the database of the URL', async (strategy) => {
  const store = storeForThisTest({ url: `unix://${server.socket}?db=5`, strategy })
  await store.ready()
  const { token } = await store.login('ada')
  await store.recordView(token, 'book')
  await store.janitor().runOnce()
  expect(await databases()).toEqual(['db5'])
})

/** All at the same time: each check mostly waits in `failureOf`. */
const eachStrategy = (check: (strategy: StrategyName) => Promise<void>) =>
  Promise.all(strategyNames.map(check))

test('a database that does not exist makes ready() fail, and nothing is written to another one', async () => {
  await eachStrategy(async (strategy) => {
    const store = storeForThisTest({ url: `unix://${server.socket}?db=99`, strategy })
    await expect
      .poll(() => failureOf(store), { message: strategy })
      .toMatchObject(refusal(99, 'ERR DB index is out of range'))
    await expect(store.login('ada'), strategy).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
    await expect(store.janitor().runOnce(), strategy).rejects.toMatchObject({
      code: 'ONETRIP_NOT_SENT',
    })
  })
  expect(await databases()).toEqual([])
})

test('a user without SELECT makes ready() fail', async () => {
  await server.redis.call('ACL', 'SETUSER', 'guest', 'on', '>pw', '~*', '+@all', '-select')
  const url = `unix://guest:pw@localhost${server.socket}?db=5`
  await eachStrategy(async (strategy) => {
    const store = storeForThisTest({ url, strategy })
    await expect
      .poll(() => failureOf(store), { message: strategy })
      .toMatchObject(refusal(5, 'NOPERM'))
  })
  expect(await databases()).toEqual([])
})

test('the error reports a wrong password', async () => {
  const own = await redisForThisTest()
  const admin = new Redis(own.socket)
  onTestFinished(() => admin.disconnect())
  await admin.call('ACL', 'SETUSER', 'default', 'resetpass', '>right')
  const url = `unix://:wrong@localhost${own.socket}?db=5`
  await eachStrategy(async (strategy) => {
    const store = storeForThisTest({ url, strategy })
    await expect
      .poll(() => failureOf(store), { message: strategy })
      .toMatchObject({
        cause: { message: expect.stringMatching(/^WRONGPASS/) },
      })
  })
})

test('after a reconnect, nothing is written to another database', async () => {
  const admin = server.redis
  await admin.call('ACL', 'SETUSER', 'guest', 'on', '>pw', '~*', '+@all')
  const store = storeForThisTest({ url: `unix://guest:pw@localhost${server.socket}?db=5` })
  await store.ready()
  const { token } = await store.login('ada')
  await admin.call('ACL', 'SETUSER', 'guest', '-select')
  await admin.call('CLIENT', 'KILL', 'USER', 'guest')
  const seen = new Set<string>()
  const view = () => store.recordView(token, 'book').then(() => 'done', String)
  await expect
    .poll(async () => seen.add(await view()) && [...seen].join())
    .toContain('there is no connection')
  await expect.poll(() => failureOf(store)).toMatchObject(refusal(5, 'NOPERM'))
  expect(seen).not.toContain('done')
  expect(await databases()).toEqual(['db5'])
  await admin.call('ACL', 'SETUSER', 'guest', '+select')
  await expect.poll(view).toBe('done')
  expect(await databases()).toEqual(['db5'])
})

// Without a ready check, only ioredis 6 waits for SELECT.
test.each(isIoredis5 ? [true] : [true, false])(
  'an injected client with a database that does not exist is not used (ready check: %s)',
  async (enableReadyCheck) => {
    const options = { ...safeRedisOptions, lazyConnect: true, enableReadyCheck, db: 99 }
    const client = new Redis(server.socket, options)
    onTestFinished(() => client.disconnect())
    const store = storeForThisTest({ client })
    await expect.poll(() => failureOf(store)).toMatchObject(refusal(99, 'ERR'))
    await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
    expect(await databases()).toEqual([])
  },
)

test('an injected client is not used for another database after a reconnect, and stays as it is', async () => {
  const admin = server.redis
  await admin.call('ACL', 'SETUSER', 'guest', 'on', '>pw', '~*', '+@all')
  const login = { username: 'guest', password: 'pw', db: 5 }
  const client = new Redis(server.socket, { ...safeRedisOptions, ...login, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  const own = () => [client.select, client.sendCommand, { ...client.options }]
  const before = own()
  const store = storeForThisTest({ client, janitor: 'elsewhere' })
  await store.ready()
  const { token } = await store.login('ada')
  await admin.call('ACL', 'SETUSER', 'guest', '-select')
  await admin.call('CLIENT', 'KILL', 'USER', 'guest')
  await expect.poll(() => failureOf(store)).toMatchObject(refusal(5, 'NOPERM'))
  expect(store.info).toMatchObject({ connections: 1, ready: 0 })
  await expect(store.recordView(token, 'book')).rejects.toMatchObject(refusal(5, 'NOPERM'))
  expect(client.status).toBe('ready') // the application still uses it
  const id = await client.client('ID')

  await admin.call('ACL', 'SETUSER', 'guest', '+select')
  const view = () => store.recordView(token, 'book').then(() => 'done', String)
  await expect.poll(view).toBe('done')
  expect(await databases()).toEqual(['db5'])
  expect(await client.client('ID')).toBe(id)
  expect(own()).toEqual(before)
})

test.each(['connect', 'ready'])(
  'a connected client with a database that does not exist is not used (%s)',
  async (event) => {
    const client = new Redis(server.socket, { ...safeRedisOptions, db: 99 })
    onTestFinished(() => client.disconnect())
    client.on('error', () => undefined)
    await new Promise<void>((resolve) => client.once(event, () => resolve()))
    const store = storeForThisTest({ client, janitor: 'elsewhere' })
    await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
    await expect.poll(() => failureOf(store)).toMatchObject(refusal(99, 'ERR'))
    expect(await databases()).toEqual([])
  },
)

test('a connected client is not ready while Redis does not reply', async () => {
  const redis = await redisForThisTest()
  const client = new Redis(redis.socket, { ...safeRedisOptions, lazyConnect: true, db: 5 })
  onTestFinished(() => client.disconnect())
  await client.connect()
  redis.program.signal('SIGSTOP')
  const store = storeForThisTest({ client, janitor: 'elsewhere' })
  expect(await failureOf(store)).toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  redis.program.signal('SIGCONT')
  await store.ready()
  await store.login('ada')
})

test('a connected client with a valid database is used', async () => {
  const client = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true, db: 5 })
  onTestFinished(() => client.disconnect())
  await client.connect()
  await client.select(6)
  const store = storeForThisTest({ client, janitor: 'elsewhere' })
  await store.ready()
  await store.login('ada')
  expect(await databases()).toEqual(['db6'])
})

test('a SELECT that the application sends on an injected client fails only for the application', async () => {
  const client = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  const store = storeForThisTest({ client })
  await store.ready()
  await expect(client.select(99)).rejects.toThrow('out of range')
  await store.login('ada')
  expect(await databases()).toEqual(['db0'])
})
