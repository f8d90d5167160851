import { inspect } from 'node:util'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import {
  type BatchTrace,
  batchChannel,
  type OperationTrace,
  operationChannel,
} from '../src/index.ts'
import { messagesOf, readyStore } from './fixture.ts'

const server = redisOfThisFile()

const storeForThisTest = () => readyStore({ redis: `unix://${server.socket}` })

test('an operation is traced from its call to its result', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const started = messagesOf<OperationTrace>(operationChannel.start)
  const ended = messagesOf<OperationTrace>(operationChannel.asyncEnd)
  const view = store.recordView(token, 'book')
  expect([started.length, ended.length]).toEqual([1, 0])
  await view
  expect(ended[0]).toBe(started[0])
  expect(ended[0]?.commands).toEqual(['ZADD', 'ZADD', 'ZREMRANGEBYRANK', 'ZINCRBY', 'HGET'])
  expect(ended[0]?.errorCode).toBeUndefined()

  const failed = messagesOf<OperationTrace>(operationChannel.error)
  await server.redis.set('viewed:', 'not a sorted set')
  await expect(store.recordView(token, 'book')).rejects.toThrow('refused')
  expect(failed).toMatchObject([{ errorCode: 'ONETRIP_REFUSED' }])
})

test('a batch names its operations', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const operations = messagesOf(operationChannel.start)
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  await Promise.all(['book', 'pen', 'cup'].map((item) => store.recordView(token, item)))
  expect(batches).toMatchObject([{ operations: 3, commands: 15, failed: 0 }])
  expect(batches[0]?.traces).toEqual(operations)
  expect(batches[0]?.durationMs).toBeGreaterThan(0)
})

test('no message contains a token, a session, a user or an item', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada-the-user')
  const messages = [operationChannel.asyncEnd, batchChannel.asyncEnd].map(messagesOf)
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
