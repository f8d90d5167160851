import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import {
  batching,
  createSessionStore,
  type Outcome,
  type Sender,
  StoreError,
  safeRedisOptions,
} from '../src/core/index.ts'
import { idOf } from './retention-fixture.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
const server = redisOfThisFile()

/** A store that sends with `send`. `closed` returns whether the store has closed its sender. */
function storeSending(send: Sender['send']) {
  let closed = false
  const close = async () => {
    closed = true
  }
  const store = createSessionStore({
    sender: { name: 'own', send, close },
    tokens,
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  return { store, closed: () => closed }
}

/** A client of this test, and a sender that uses it. */
async function ownClient(): Promise<{ redis: Redis; send: Sender['send'] }> {
  const redis = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => redis.disconnect())
  await redis.connect()
  const send: Sender['send'] = ({ commands }) =>
    Promise.all(
      commands.map(async ([name, ...args]) => {
        try {
          return (await redis.call(name, ...args)) as Outcome
        } catch (error) {
          return error as Error
        }
      }),
    )
  return { redis, send }
}

const noReply = async () => await new Promise<never>(() => {})

test('a custom sender sends all commands', async () => {
  const { send } = await ownClient()
  const names: string[] = []
  const { store, closed } = storeSending((operation) => {
    names.push(...operation.commands.map(([name]) => name))
    return send(operation)
  })
  await store.ready()
  expect(store).toMatchObject({ info: { strategy: 'own', connections: 0 } })
  const { token } = await store.login('ada')
  expect(await store.recordView(token, 'book')).toEqual({ user: 'ada', views: 1 })
  expect(await store.checkToken(token)).toMatchObject({ user: 'ada' })
  expect(await store.viewedItems(token)).toMatchObject([{ item: 'book' }])
  expect(await store.popularItems()).toEqual([{ item: 'book', views: 1 }])
  await store.janitor({ maxSessions: 1, sweepKeys: true }).runOnce()
  expect(await store.logout(token)).toBe(true)
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_UNKNOWN_SESSION',
  })
  expect(new Set(names)).toEqual(
    new Set(
      'TYPE INFO ZADD HSET HMGET HSCAN ZCARD ZSCAN ZREMRANGEBYRANK ZINCRBY HGET ZSCORE ZREVRANGE ZRANGE EVAL SCAN HDEL ZREM UNLINK DEL ZREMRANGEBYSCORE'.split(
        ' ',
      ),
    ),
  )
  await store.close()
  expect(closed()).toBe(true)
})

test('outcomes of a custom sender give the same errors as those of the strategies', async () => {
  const { redis, send } = await ownClient()
  const { store } = storeSending(send)
  const token = issueToken(store)
  await runUpdateToken(store, token, 'ada')
  await redis.set(`viewed:${idOf(token)}`, 'not a sorted set')
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
    message: expect.stringContaining('ZADD (command 2 of 5): WRONGTYPE'),
  })
  redis.disconnect()
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
  })
})

test('if a sender rejects, the outcome is unknown, unless it rejects with a StoreError', async () => {
  const cause = new Error('the client is closed')
  const rejecting = storeSending(() => Promise.reject(cause)).store
  await expect(rejecting.login('ada')).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    cause,
  })
  const notSent = new StoreError('ONETRIP_NOT_SENT', 'there is no connection')
  const rejectingWithCode = storeSending(() => Promise.reject(notSent)).store
  await expect(rejectingWithCode.login('ada')).rejects.toBe(notSent)
})

test('a sender without a reply is not ready in time', async () => {
  const { store } = storeSending(noReply)
  await expect(store.ready(50)).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
    message: 'not sent to Redis: no usable reply after 0.05 s',
  })
})

test('a sender cannot be combined with a URL', () => {
  const sender = { name: 'own', send: noReply, close: async () => {} }
  expect(() => createSessionStore({ sender, tokens, url: 'redis://127.0.0.1' })).toThrow(
    'set exactly one of url, client and sender',
  )
})

const lists: [string, Sender['send']][] = [
  ['omits outcomes after an error', async () => [new Error('lost')]],
  ['returns no outcomes', async () => []],
  ['does not return a promise', (() => undefined) as unknown as Sender['send']],
]

test.each(lists)('a sender that %s makes all operations fail, batched or not', async (_, send) => {
  for (const decorate of [(sender: Sender) => sender, batching]) {
    const sender = decorate({ name: 'own', send, close: async () => {} })
    const store = createSessionStore({ sender, tokens, janitor: 'elsewhere', maxInFlight: 4 })
    for (let round = 0; round < 3; round++) {
      const logins = await Promise.allSettled(['a', 'b', 'c'].map((user) => store.login(user)))
      expect(logins).toMatchObject(
        logins.map(() => ({
          status: 'rejected',
          reason: { name: 'StoreError', code: 'ONETRIP_OUTCOME_UNKNOWN' },
        })),
      )
    }
    await store.close()
  }
})

const lost = new Error('the connection was lost')
const notSent = new StoreError('ONETRIP_NOT_SENT', 'there is no connection')
const refused = Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' })

test.each<[Outcome[], object]>([
  [[lost], { code: 'ONETRIP_OUTCOME_UNKNOWN', mayHaveWritten: true, retrySafe: false }],
  [[], { code: 'ONETRIP_OUTCOME_UNKNOWN', mayHaveWritten: true, retrySafe: false }],
  [['ada'], { code: 'ONETRIP_OUTCOME_UNKNOWN', mayHaveWritten: true, retrySafe: false }],
  [[refused], { code: 'ONETRIP_OUTCOME_UNKNOWN', mayHaveWritten: true, retrySafe: false }],
  [[notSent], { code: 'ONETRIP_NOT_SENT', mayHaveWritten: false, retrySafe: true }],
  [[lost, notSent], { code: 'ONETRIP_OUTCOME_UNKNOWN', mayHaveWritten: false, retrySafe: true }],
])(
  'of a read and two writes, a sender returns only %o: batched or not, %o',
  async (outcomes, error) => {
    const commands = [
      ['HGET', 'login:', 'id'],
      ['ZINCRBY', 'viewed:', -1, 'book'],
      ['ZINCRBY', 'viewed:', -1, 'pen'],
    ] as const
    for (const decorate of [(sender: Sender) => sender, batching]) {
      const send = async () => outcomes
      const sender = decorate({ name: 'own', send, close: async () => {} })
      const store = createSessionStore({ sender, tokens, janitor: 'elsewhere' })
      const run = store.run({ commands, readOnly: false, read: () => undefined })
      await expect(run).rejects.toMatchObject(error)
      await store.close()
    }
  },
)

test('batching keeps the optional functions of a sender that is a class instance', async () => {
  class Own {
    readonly name = 'own'
    #closed = false
    async send() {
      return []
    }
    async close() {
      this.#closed = true
    }
    connections() {
      return { connections: 1, ready: Number(!this.#closed) }
    }
  }
  const batched = batching(new Own())
  expect(batched.name).toBe('own')
  expect(batched.connections?.()).toEqual({ connections: 1, ready: 1 })
  await batched.close()
  expect(batched.connections?.()).toEqual({ connections: 1, ready: 0 })
})

test('a sender that never closes does not prevent the store from closing', async () => {
  const sender = { name: 'own', send: noReply, close: noReply }
  const store = createSessionStore({ sender, tokens, janitor: 'elsewhere', deadlineMs: 50 })
  await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
  await Promise.all([store.close(), store.close()])
})
