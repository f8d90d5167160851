import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import type { Command, Operation } from '../src/index.ts'
import { readyStore } from './fixture.ts'

const server = redisOfThisFile()

const storeForThisTest = () => readyStore({ redis: `unix://${server.socket}` })

const replies = (...commands: Command[]): Operation<unknown> => ({
  commands,
  readOnly: false,
  read: (all) => all,
})

test('commands that are unsafe on a shared connection are rejected before anything is sent', async () => {
  const store = await storeForThisTest()
  for (const name of ['BLPOP', 'multi', 'Subscribe', 'SELECT', 'WATCH', 'CLIENT', 'SHUTDOWN']) {
    await expect(store.run(replies(['SET', 'a', 1], [name, '0']))).rejects.toMatchObject({
      code: 'ONETRIP_INVALID_INPUT',
      statusCode: 400,
      message: `${name.toUpperCase()} cannot be sent over a shared connection`,
    })
  }
  await expect(
    store.run(replies(['XREAD', 'block', 0, 'STREAMS', 'stream', '$'])),
  ).rejects.toMatchObject({ code: 'ONETRIP_INVALID_INPUT' })
  expect(await server.redis.exists('a')).toBe(0)
})

test('a failed script reports that it may have written', async () => {
  const store = await storeForThisTest()
  await server.redis.set('text', 'x')
  const text = "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])"
  for (const name of ['EVAL', 'eval']) {
    await expect(store.run(replies([name, text, 2, 'count', 'text']))).rejects.toMatchObject({
      code: 'ONETRIP_REFUSED',
      mayHaveWritten: true,
      retrySafe: false,
    })
  }
  const readOnly = { ...replies(['GET', 'text'], ['INCR', 'text']), readOnly: true }
  await expect(store.run(readOnly)).rejects.toMatchObject({ mayHaveWritten: false })
})
