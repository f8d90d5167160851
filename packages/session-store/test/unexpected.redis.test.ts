import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import {
  batchChannel,
  errorChannel,
  type SentBatch,
  type Strategy,
  strategyNames,
  strategyOf,
  type Update,
} from '../src/index.ts'
import { strategyFor } from '../src/strategies/choice.ts'

const server = redisOfThisFile()
const cause = new TypeError('not foreseen')

const ping: Update<unknown> = { commands: [['PING']], readOnly: true, read: ([pong]) => pong }

/** One whose reply cannot be read. */
const unreadable = (readOnly: boolean): Update<void> => ({
  commands: [readOnly ? ['PING'] : ['SET', 'key', 'value']],
  readOnly,
  read() {
    throw cause
  },
})

function messagesOf<Message>(channel: typeof batchChannel): Message[] {
  const messages: Message[] = []
  const listen = (message: unknown) => messages.push(message as Message)
  channel.subscribe(listen)
  onTestFinished(() => void channel.unsubscribe(listen))
  return messages
}

async function expectStoreErrors(strategy: Strategy) {
  onTestFinished(() => strategy.close())
  await strategy.ready(10_000)
  const published = messagesOf(errorChannel)
  for (const readOnly of [true, false]) {
    await expect(strategy.run(unreadable(readOnly))).rejects.toMatchObject({
      name: 'StoreError',
      code: 'ONETRIP_OUTCOME_UNKNOWN',
      mayHaveWritten: !readOnly,
      retrySafe: readOnly,
      cause,
    })
  }
  expect(published).toEqual([
    { code: 'ONETRIP_OUTCOME_UNKNOWN' },
    { code: 'ONETRIP_OUTCOME_UNKNOWN' },
  ])
}

test.each(strategyNames)('%s: an error that was not foreseen is a StoreError', async (name) => {
  await expectStoreErrors(strategyFor(name, { url: `unix://${server.socket}`, deadlineMs: 20_000 }))
})

test('a strategy of ones own: an error that was not foreseen is a StoreError', async () => {
  await expectStoreErrors(
    strategyOf({ name: 'own', send: async () => ['PONG'], close: async () => {} }),
  )
})

test('an update that fails leaves the others of its batch alone', async () => {
  const strategy = strategyFor('batch', { url: `unix://${server.socket}`, deadlineMs: 20_000 })
  onTestFinished(() => strategy.close())
  await strategy.ready(10_000)
  const batches = messagesOf<SentBatch>(batchChannel)
  const runs = [strategy.run(ping), strategy.run(unreadable(true)), strategy.run(ping)]
  expect(await Promise.allSettled(runs)).toMatchObject([
    { value: 'PONG' },
    { reason: { cause } },
    { value: 'PONG' },
  ])
  expect(batches).toMatchObject([{ updates: 3, failed: 1 }])
})

test('the updates of a batch that is late fail once each, although their replies come', async () => {
  const redis = await redisForThisTest()
  const strategy = strategyFor('batch', { url: `unix://${redis.socket}`, deadlineMs: 500 })
  onTestFinished(() => strategy.close())
  await strategy.ready(10_000)
  const batches = messagesOf<SentBatch>(batchChannel)
  const published = messagesOf(errorChannel)
  redis.program.signal('SIGSTOP')
  const pings = Array.from({ length: 3 }, () => strategy.run(ping))
  for (const { status, reason } of (await Promise.allSettled(pings)) as PromiseRejectedResult[]) {
    expect([status, reason.message]).toEqual(['rejected', 'sent to Redis, but the reply is late'])
  }
  redis.program.signal('SIGCONT')
  await expect.poll(() => batches).toMatchObject([{ updates: 3, failed: 3 }])
  expect(published).toHaveLength(3)
})
