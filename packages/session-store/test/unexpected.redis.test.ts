import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import {
  type BatchTrace,
  batchChannel,
  errorChannel,
  type Operation,
  strategyNames,
} from '../src/core/index.ts'
import { messagesOf, readyStore } from './fixture.ts'

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

test.each(strategyNames)('%s: an unexpected error becomes a StoreError', async (strategy) => {
  const store = await readyStore({ url: `unix://${server.socket}`, strategy })
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

test('an operation that fails does not affect the others of its batch', async () => {
  const store = await readyStore({ url: `unix://${server.socket}` })
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const runs = [store.run(ping), store.run(unreadable(true)), store.run(ping)]
  expect(await Promise.allSettled(runs)).toMatchObject([
    { value: 'PONG' },
    { reason: { cause } },
    { value: 'PONG' },
  ])
  expect(batches).toMatchObject([{ operations: 3, failed: 0 }])
})

test('the operations of a late batch fail once each, even if their replies arrive', async () => {
  const redis = await redisForThisTest()
  const store = await readyStore({ url: `unix://${redis.socket}`, deadlineMs: 500 })
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const published = messagesOf(errorChannel)
  redis.program.signal('SIGSTOP')
  const pings = await Promise.allSettled([store.run(ping), store.run(ping), store.run(ping)])
  expect(pings).toMatchObject(pings.map(() => ({ reason: { code: 'ONETRIP_OUTCOME_UNKNOWN' } })))
  redis.program.signal('SIGCONT')
  await expect.poll(() => batches).toMatchObject([{ operations: 3, failed: 0 }])
  expect(published).toHaveLength(3)
})
