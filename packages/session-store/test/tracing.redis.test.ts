import { inspect } from 'node:util'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import {
  batchChannel,
  createSessionStore,
  operationChannel,
  type Sender,
  type SessionStoreOptions,
} from '../src/core/index.ts'

const server = redisOfThisFile()

async function storeForThisTest(options: Partial<SessionStoreOptions> = {}) {
  const store = createSessionStore({
    url: `unix://${server.socket}`,
    tokens: { secrets: ['a-secret-for-tests-a-secret-for-tests'] },
    janitor: 'elsewhere',
    deadlineMs: 20_000,
    ...options,
  })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

/** Collects what a tracing channel publishes during the current test: event and message. */
function eventsOf<Message extends object>(channel: {
  subscribe(subscribers: Record<Event, (message: Message) => void>): void
  unsubscribe(subscribers: Record<Event, (message: Message) => void>): void
}): [event: Event, message: Message][] {
  const events: [Event, Message][] = []
  const on = (event: Event) => (message: Message) => void events.push([event, message])
  const subscribers = {
    start: on('start'),
    end: on('end'),
    asyncStart: on('asyncStart'),
    asyncEnd: on('asyncEnd'),
    error: on('error'),
  }
  channel.subscribe(subscribers)
  onTestFinished(() => channel.unsubscribe(subscribers))
  return events
}
type Event = 'start' | 'end' | 'asyncStart' | 'asyncEnd' | 'error'

const VIEW = ['ZADD', 'ZADD', 'ZREMRANGEBYRANK', 'ZINCRBY', 'HGET']

test('an operation is traced from its call to its result', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const operations = eventsOf(operationChannel)
  await store.recordView(token, 'book')
  expect(operations.map(([event]) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd'])
  const [[, trace] = []] = operations
  expect(operations.every(([, message]) => message === trace)).toBe(true)
  expect(trace?.commands).toEqual(VIEW)
  expect(trace?.errorCode).toBeUndefined()
})

test('an operation that fails is traced with the code of its error', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  await server.redis.del('login:')
  await server.redis.set('login:', 'not a hash')
  const operations = eventsOf(operationChannel)
  await expect(store.recordView(token, 'book')).rejects.toThrow('refused')
  expect(operations.map(([event]) => event)).toEqual([
    'start',
    'end',
    'error',
    'asyncStart',
    'asyncEnd',
  ])
  expect(operations[0]?.[1].errorCode).toBe('ONETRIP_REFUSED')
})

test('a batch names its operations', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const operations = eventsOf(operationChannel)
  const batches = eventsOf(batchChannel)
  await Promise.all(['book', 'pen', 'cup'].map((item) => store.recordView(token, item)))
  expect(batches.map(([event]) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd'])
  const started = operations.filter(([event]) => event === 'start').map(([, message]) => message)
  expect(batches[0]?.[1].traces).toEqual(started)
  expect(batches[0]?.[1]).toMatchObject({ operations: 3, commands: 7, failed: 0 })
  expect(batches[0]?.[1].durationMs).toBeGreaterThan(0)
})

test('no message contains a token, a session, a user or an item', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada-the-user')
  const messages = [eventsOf(operationChannel), eventsOf(batchChannel)]
  await store.recordView(token, 'an-item')
  await store.checkToken(token)
  await store.recentSessions()
  await store.logout(token)
  await expect(store.recordView(token, 'an-item')).rejects.toThrow()
  await server.redis.set('viewed:', 'not a sorted set')
  await expect(store.popularItems()).rejects.toThrow()
  const seen = inspect(messages, { depth: 20, getters: true, showHidden: true })
  expect(seen).toContain('ZREVRANGE')
  expect(seen).toContain('ONETRIP_REFUSED')
  for (const secret of ['ada-the-user', 'an-item', token, ...token.split('.')]) {
    expect(seen).not.toContain(secret)
  }
})

test('nothing is added to an operation without subscribers', async () => {
  const lists: Parameters<Sender['send']>[0][] = []
  const sender = {
    name: 'own',
    send: async (list: Parameters<Sender['send']>[0]) => {
      lists.push(list)
      return ['PONG']
    },
    close: async () => {},
  }
  const store = await storeForThisTest({ sender, url: undefined })
  const operation = { commands: [['PING'] as const], readOnly: true, read: () => undefined }
  await store.run(operation)
  expect(lists.at(-1)).toBe(operation)
  eventsOf(operationChannel)
  await store.run(operation)
  expect(lists.at(-1)?.trace?.commands).toEqual(['PING'])
})
