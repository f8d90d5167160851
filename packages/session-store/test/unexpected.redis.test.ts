import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import {
  type BatchTrace,
  batchChannel,
  errorChannel,
  type Operation,
  strategyNames,
} from '../src/core/index.ts'
import { articleKeys } from '../src/core/keys.ts'
import { untilServed } from '../src/core/sending/nodes.ts'
import { createRunner } from '../src/core/sending/runner.ts'
import { chooseSender } from '../src/core/sending/strategies.ts'

const server = redisOfThisFile()
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

function messagesOf<Message>(channel: typeof errorChannel): Message[] {
  const messages: Message[] = []
  const listen = (message: unknown) => messages.push(message as Message)
  channel.subscribe(listen)
  onTestFinished(() => void channel.unsubscribe(listen))
  return messages
}

async function runnerOf(options: Parameters<typeof chooseSender>[0]) {
  const sender = chooseSender(options)
  const runner = createRunner(sender, {
    deadlineMs: options.deadlineMs ?? 20_000,
    maxInFlight: 1_000,
  })
  onTestFinished(() => runner.close())
  await untilServed({ runner, keys: articleKeys }, 10_000)
  return runner
}

async function expectStoreErrors(options: Parameters<typeof chooseSender>[0]) {
  const runner = await runnerOf(options)
  const published = messagesOf(errorChannel)
  for (const readOnly of [true, false]) {
    await expect(runner.run(unreadable(readOnly))).rejects.toMatchObject({
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

test.each(strategyNames)('%s: an unexpected error becomes a StoreError', async (name) => {
  await expectStoreErrors({ strategy: name, url: `unix://${server.socket}` })
})

test('custom sender: an unexpected error becomes a StoreError', async () => {
  const sender = { name: 'own', send: async () => ['PONG'], close: async () => {} }
  await expectStoreErrors({ sender })
})

test('an operation that fails does not affect the others of its batch', async () => {
  const runner = await runnerOf({ url: `unix://${server.socket}` })
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const runs = [runner.run(ping), runner.run(unreadable(true)), runner.run(ping)]
  expect(await Promise.allSettled(runs)).toMatchObject([
    { value: 'PONG' },
    { reason: { cause } },
    { value: 'PONG' },
  ])
  expect(batches).toMatchObject([{ operations: 3, failed: 0 }])
})

test('the operations of a late batch fail once each, even if their replies arrive', async () => {
  const redis = await redisForThisTest()
  const runner = await runnerOf({ url: `unix://${redis.socket}`, deadlineMs: 500 })
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const published = messagesOf(errorChannel)
  redis.program.signal('SIGSTOP')
  const pings = Array.from({ length: 3 }, () => runner.run(ping))
  for (const { status, reason } of (await Promise.allSettled(pings)) as PromiseRejectedResult[]) {
    expect([status, reason.message]).toEqual([
      'rejected',
      'sent to Redis, but no reply before the deadline',
    ])
  }
  redis.program.signal('SIGCONT')
  await expect.poll(() => batches).toMatchObject([{ operations: 3, failed: 0 }])
  expect(published).toHaveLength(3)
})
