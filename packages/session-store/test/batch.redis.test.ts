import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import {
  type BatchTrace,
  batchChannel,
  type Command,
  errorChannel,
  type Operation,
  type SessionStoreOptions,
} from '../src/index.ts'
import { pooled } from '../src/redis/pool.ts'
import { codeOf, idOf, messagesOf, readyStore } from './fixture.ts'
import { issueToken } from './write-session.ts'

const server = redisOfThisFile()

const storeForThisTest = (options: Partial<SessionStoreOptions> = {}) =>
  readyStore({ redis: `unix://${server.socket}`, ...options })

test('every caller of a batch gets its own result', async () => {
  const store = await storeForThisTest()
  const sessions = await Promise.all(['ada', 'bob', 'cyd'].map((user) => store.login(user)))
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const gone = issueToken(store)
  const [ada = '', bob = '', cyd = ''] = sessions.map(({ token }) => token)
  const results = await Promise.all([
    store.recordView(ada, 'book'),
    store.recordView(bob, 'book'),
    store.recordView(gone, 'book').catch(codeOf),
    store.recordView(ada, 'pen'),
    store.checkToken(cyd).then(({ user }) => user),
    store.recordView(ada, 'book'),
    store.logout(cyd),
  ])
  expect(results).toEqual([
    { user: 'ada', views: 1 },
    { user: 'bob', views: 2 },
    'ONETRIP_UNKNOWN_SESSION',
    { user: 'ada', views: 1 },
    'cyd',
    { user: 'ada', views: 4 }, // the view in between belonged to an ended session and was undone
    true,
  ])
  expect(batches[0]).toMatchObject({ operations: 7, commands: 5 * 5 + 2 + 1, failed: 0 })
  expect(await store.popularItems()).toEqual([
    { item: 'book', views: 3 },
    { item: 'pen', views: 1 },
  ])
})

test('more callers than fit into a batch are served by several batches', async () => {
  const store = await storeForThisTest({ poolSize: 3 })
  const { token } = await store.login('ada')
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const views = Array.from({ length: 100 }, () => store.recordView(token, 'book'))
  const counts = (await Promise.all(views)).map(({ views }) => views)
  expect(counts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
  const sizes = () => batches.map(({ operations }) => operations).toSorted((a, b) => b - a)
  expect(sizes()).toEqual([22, 16, 16, 16, 16, 14])
  // With more callers a batch has more operations.
  await Promise.all(Array.from({ length: 1_000 }, () => store.checkToken(token)))
  expect(sizes()[0]).toBe(64)
})

test('an empty list of commands takes no reply of another one', async () => {
  const sender = pooled({
    redis: `unix://${server.socket}`,
    poolSize: 1,
    deadlineMs: 20_000,
  })
  onTestFinished(() => sender.close())
  const send = (commands: Command[]) => sender.send({ commands })
  await expect.poll(() => send([['ECHO', 'first']]).catch(() => undefined)).toEqual(['first'])
  const both = Promise.all([send([]), send([['ECHO', 'next']])])
  expect(await both).toEqual([[], ['next']])
})

test('a connection that does not reply for too long is reopened', async () => {
  const own = await redisForThisTest()
  const url = `unix://${own.socket}`
  const { token } = await (await storeForThisTest({ redis: url })).login('ada')
  const store = await storeForThisTest({ redis: url, deadlineMs: 100 })
  own.program.signal('SIGSTOP')
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
  })
  await expect.poll(() => store.info?.ready).toBe(0) // closed after five deadlines
  own.program.signal('SIGCONT')
  await expect
    .poll(() => store.recordView(token, 'book').catch(codeOf))
    .toMatchObject({ user: 'ada' })
})

async function storeOfUsers() {
  const store = await storeForThisTest()
  const users = Array.from({ length: 16 }, (_, index) => `user-${index}`)
  const sessions = await Promise.all(users.map((user) => store.login(user)))
  return { store, tokens: sessions.map(({ token }) => token) }
}

const failures = async (calls: Promise<unknown>[]) =>
  (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected').length

test('a key of the wrong type fails the calls that use it, until it is repaired', async () => {
  const { store, tokens } = await storeOfUsers()
  const viewAll = () => failures(tokens.map((token) => store.recordView(token, 'book')))

  const own = `viewed:${idOf(tokens[0] ?? '')}`
  await server.redis.set(own, 'not a sorted set')
  expect(await viewAll()).toBe(1)
  await server.redis.del(own)
  for (const shared of ['recent:', 'login:']) {
    await server.redis.rename(shared, 'saved')
    await server.redis.set(shared, 'neither a hash nor a sorted set')
    expect(await viewAll()).toBe(tokens.length)
    await server.redis.rename('saved', shared)
  }
  expect(await viewAll()).toBe(0)
})

test.each<[Command]>([
  [['ZADD', 'recent:', 'XX', 'not a number', 'member']],
  [['ZADD', 'recent:', 'XX', 1]],
  [['HGET', 'login:']],
])('the custom command %j, which Redis refuses, fails alone', async (command) => {
  const { store, tokens } = await storeOfUsers()
  const view = (token: string) => store.recordView(token, 'book')
  const views = tokens.slice(0, 8).map(view)
  const own = store.run({ commands: [command], readOnly: false, read: (replies) => replies })
  const laterViews = tokens.slice(8, 15).map(view)
  expect(await Promise.all([failures([own]), failures([...views, ...laterViews])])).toEqual([1, 0])
})

const cause = new TypeError('not foreseen')

const ping: Operation<unknown> = { commands: [['PING']], readOnly: true, read: ([pong]) => pong }

/** An operation whose reply cannot be read. */
const unreadable = (readOnly: boolean): Operation<void> => ({
  commands: [readOnly ? ['PING'] : ['SET', 'key', 'value']],
  readOnly,
  read() {
    throw cause
  },
})

test('an unexpected error becomes a StoreError', async () => {
  const store = await storeForThisTest()
  const published = messagesOf(errorChannel)
  for (const readOnly of [true, false]) {
    await expect(store.run(unreadable(readOnly))).rejects.toMatchObject({
      name: 'StoreError',
      code: 'ONETRIP_OUTCOME_UNKNOWN',
      mayHaveWritten: !readOnly,
      retrySafe: readOnly,
      cause,
    })
  }
  const code = 'ONETRIP_OUTCOME_UNKNOWN'
  expect(published).toEqual([{ code }, { code }])
})

test('the operations of a late batch fail once each, even if their replies arrive', async () => {
  const redis = await redisForThisTest()
  const store = await readyStore({ redis: `unix://${redis.socket}`, deadlineMs: 500 })
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const published = messagesOf(errorChannel)
  redis.program.signal('SIGSTOP')
  const pings = await Promise.allSettled([store.run(ping), store.run(ping), store.run(ping)])
  expect(pings).toMatchObject(pings.map(() => ({ reason: { code: 'ONETRIP_OUTCOME_UNKNOWN' } })))
  redis.program.signal('SIGCONT')
  await expect.poll(() => batches).toMatchObject([{ operations: 3, failed: 0 }])
  expect(published).toHaveLength(3)
})
