import { inspect } from 'node:util'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expect, onTestFinished, test } from 'vitest'
import { nodeRedisSender } from '../src/adapters/node-redis.ts'
import {
  articleKeys,
  createSessionStore,
  type SessionStore,
  type SessionStoreOptions,
  StoreError,
  safeRedisOptions,
  strategyNames,
} from '../src/core/index.ts'
import { idOf } from './retention-fixture.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

async function storeForThisTest(options: Partial<SessionStoreOptions>): Promise<SessionStore> {
  const store = createSessionStore({ tokens, janitor: 'elsewhere', deadlineMs: 20_000, ...options })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

async function nodeRedisClient() {
  const client = createClient({
    socket: { path: server.socket, tls: false },
    disableOfflineQueue: true,
  })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** All text of this call's error that a log may show. */
async function shownError(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(StoreError)
  return inspect(error, { depth: null, showHidden: true })
}

const ways: [string, () => Partial<SessionStoreOptions> | Promise<Partial<SessionStoreOptions>>][] =
  [
    ...strategyNames.map((strategy): (typeof ways)[number] => [
      strategy,
      () => ({ url: `unix://${server.socket}`, strategy }),
    ]),
    ['node-redis', async () => ({ sender: nodeRedisSender(await nodeRedisClient()) })],
  ]

test.each(ways)('%s: a refused command shows its name, not its arguments', async (_, options) => {
  const store = await storeForThisTest(await options())
  const { token } = await store.login('ada')
  const id = idOf(token)
  await server.redis.set(articleKeys.viewed(id), 'not a sorted set')
  const shown = await shownError(store.recordView(token, 'a-secret-item'))
  expect(shown).toContain('WRONGTYPE')
  for (const hidden of [id, 'a-secret-item']) expect(shown).not.toContain(hidden)

  const commands = [['NOSUCHCOMMAND', 'a-secret-key', 'a secret value']] as const
  const unknown = await shownError(store.run({ commands, readOnly: false, read: () => null }))
  expect(unknown).toContain('ONETRIP_REFUSED')
  expect(unknown).not.toMatch(/a.secret/)
})

test.each(strategyNames)('%s: a lost reply shows no arguments', async (strategy) => {
  const redis = await redisForThisTest()
  const store = await storeForThisTest({ url: `unix://${redis.socket}`, strategy })
  const { token } = await store.login('ada')
  redis.program.signal('SIGSTOP')
  const view = shownError(store.recordView(token, 'a-secret-item'))
  redis.program.signal('SIGKILL')
  const shown = await view
  for (const hidden of [idOf(token), 'a-secret-item']) expect(shown).not.toContain(hidden)
})

test('a wrong password is not shown', async () => {
  const redis = await redisForThisTest()
  const admin = new Redis(redis.socket)
  onTestFinished(() => admin.disconnect())
  await admin.config('SET', 'requirepass', 'right')
  for (const options of [
    { url: `unix://:a-wrong-password@localhost${redis.socket}` },
    { url: `unix://:a-wrong-password@localhost${redis.socket}`, strategy: 'naive' as const },
  ]) {
    const store = createSessionStore({ ...options, tokens, janitor: 'elsewhere' })
    onTestFinished(() => store.close())
    const shown = await shownError(store.ready(500))
    expect(shown).toContain('WRONGPASS')
    expect(shown).not.toContain('a-wrong-password')
  }
})

test('the error of an injected client stays as it is, for the application', async () => {
  const commands = [['GET', 'a-secret-key', 'a-secret-value']] as const
  let original: Error | undefined
  const sender = {
    name: 'mine',
    async send() {
      original = await server.redis.call('GET', 'a-secret-key', 'a-secret-value').then(
        () => undefined,
        (error: Error) => error,
      )
      return [original ?? null]
    },
    async close() {},
  }
  const store = createSessionStore({ sender, tokens, janitor: 'elsewhere' })
  const error: StoreError = await store
    .run({ commands, readOnly: true, read: () => null })
    .catch((thrown) => thrown)
  expect(error.code).toBe('ONETRIP_REFUSED')
  expect(original).toMatchObject({
    command: { name: 'GET', args: ['a-secret-key', 'a-secret-value'] },
  })
  const { cause } = error as { cause: Error }
  expect(cause).toMatchObject({ name: 'ReplyError', command: { name: 'GET' } })
  expect(cause).toBeInstanceOf(original?.constructor)
  expect(cause.stack).toBe(original?.stack)
  expect(inspect(error, { depth: null, showHidden: true })).not.toContain('a-secret')
})

test('an injected client, with a command that Redis refuses', async () => {
  const client = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  const store = await storeForThisTest({ client })
  const commands = [
    ['SET', 'a-secret-key', 'a-secret-value'],
    ['SET', 'a-secret-key'],
  ] as const
  const shown = await shownError(store.run({ commands, readOnly: false, read: () => null }))
  expect(shown).toContain('ONETRIP_REFUSED')
  expect(shown).not.toContain('a-secret')
})
