import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import type { Command, Operation } from '../src/index.ts'
import { idOf, readyStore } from './fixture.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

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

test('an operation with the name of an object property does no harm', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const odd = replies(['constructor', 'key'])
  const [refused, view] = await Promise.allSettled([
    store.run(odd),
    store.recordView(token, 'book'),
  ])
  expect(refused).toMatchObject({ reason: { code: 'ONETRIP_REFUSED' } })
  expect(view).toMatchObject({ value: { views: 1 } })
})

test('a logout and an operation of the same session in one batch leave all of the session or nothing', async () => {
  const store = await storeForThisTest()
  const token = issueToken(store)
  const id = idOf(token)
  for (let round = 0; round < 20; round++) {
    await runUpdateToken(store, token, 'ada')
    const calls = [() => store.logout(token), () => runUpdateToken(store, token, 'ada', 'book')]
    if (round % 2 === 1) calls.reverse()
    await Promise.all(calls.map((call) => call()))
    const [login, recent] = await Promise.all([
      server.redis.hexists('login:', id),
      server.redis.zscore('recent:', id),
    ])
    expect(login === 1).toBe(recent !== null)
  }
})
