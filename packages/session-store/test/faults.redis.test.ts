import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { disconnectionChannel, type SessionStoreOptions } from '../src/index.ts'
import { adminForThisTest, messagesOf, newStore, outcomeOf, readyStore } from './fixture.ts'
import { issueToken, runWriteSession } from './write-session.ts'

const storeOn = (socket: string, options: Partial<SessionStoreOptions> = {}) =>
  readyStore({ redis: `unix://${socket}`, deadlineMs: 2_000, ...options })

const codes = async (calls: Promise<unknown>[]) => new Set(await Promise.all(calls.map(outcomeOf)))

test('without Redis, ready() fails in bounded time', async () => {
  const store = newStore({ redis: 'unix:///nowhere/redis.sock' })
  await expect(store.ready(2_000)).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
    message: 'not sent to Redis: no connection after 2 s',
    retrySafe: true,
    cause: { code: 'ENOENT' },
  })
})

test('if Redis is connected but does not reply, ready() says so', async () => {
  const redis = await redisForThisTest()
  const store = await storeOn(redis.socket)
  redis.program.signal('SIGSTOP')
  await expect(store.ready(100)).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
    message: 'not sent to Redis: no usable reply after 0.1 s',
    cause: { code: 'ONETRIP_OUTCOME_UNKNOWN' },
  })
})

test('when Redis is killed, operations in flight fail at once; when it is back, it is used again', async () => {
  const redis = await redisForThisTest({ config: { appendfsync: 'always' } })
  const store = await storeOn(redis.socket, { poolSize: 2, deadlineMs: 20_000 })
  const token = issueToken(store)
  await runWriteSession(store, token, 'ada')
  const lostConnections = messagesOf(disconnectionChannel)

  redis.program.signal('SIGSTOP') // so that the views are in flight when Redis dies
  const inFlight = Array.from({ length: 20 }, () => store.recordView(token, 'book'))
  const settled = codes(inFlight)
  redis.program.signal('SIGKILL')
  // Long before the deadline:
  expect(await settled).toEqual(new Set(['ONETRIP_OUTCOME_UNKNOWN']))
  await expect.poll(() => store.info?.ready).toBe(0)
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
    mayHaveWritten: false,
  })

  await redis.restart()
  await expect.poll(() => store.checkToken(token)).toMatchObject({ user: 'ada' })
  const { views } = await store.recordView(token, 'book')
  // Some of the 20 may have been written, each at most once and not again after the reconnect.
  expect(views).toBeLessThanOrEqual(21)
  expect(lostConnections).toHaveLength(2) // failed attempts to reconnect do not count
})

test('when Redis is paused, operations fail at the deadline, and the number in flight is limited', async () => {
  const redis = await redisForThisTest()
  const patient = await storeOn(redis.socket)
  const { token } = await patient.login('ada')
  const store = await storeOn(redis.socket, { deadlineMs: 1_000, maxInFlight: 10 })

  redis.program.signal('SIGSTOP')
  const views = Array.from({ length: 12 }, () => store.recordView(token, 'book'))
  expect(await codes(views)).toEqual(new Set(['ONETRIP_OUTCOME_UNKNOWN', 'ONETRIP_OVERLOADED']))
  // A late command is still in flight.
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_OVERLOADED',
  })
  redis.program.signal('SIGCONT')
  await expect.poll(() => store.info?.inFlight).toBe(0)
  expect(await patient.recordView(token, 'book')).toMatchObject({ views: 11 })
})

test('writes refused because memory is full report that nothing was written', async () => {
  const redis = await redisForThisTest({
    config: { maxmemory: '1', 'maxmemory-policy': 'noeviction' },
  })
  const store = await storeOn(redis.socket)
  await expect(runWriteSession(store, issueToken(store), 'ada')).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
    mayHaveWritten: false,
    message: expect.stringContaining('ZADD (command 1 of 2): OOM'),
  })
  // ZREMRANGEBYRANK is not refused, but there is nothing to remove.
  await expect(store.recordView(issueToken(store), 'book')).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
    mayHaveWritten: false,
    retrySafe: true,
  })
})

test('a script that Redis refuses to execute has written nothing', async () => {
  const redis = await redisForThisTest()
  const admin = adminForThisTest(redis.socket)
  const store = await storeOn(redis.socket)
  const { token } = await store.login('ada')
  const refused = (kind: string, mayHaveWritten = false) => ({
    code: 'ONETRIP_REFUSED',
    message: expect.stringContaining(`: ${kind}`),
    mayHaveWritten,
    retrySafe: !mayHaveWritten,
  })
  const patch = () => store.patch(token, { cart: [] })
  const evaluate = (script: string) =>
    store.run({
      commands: [['EVAL', script, 2, 'old', 'new']],
      readOnly: false,
      read: ([reply]) => reply,
    })
  await admin.config('SET', 'maxmemory', '1')
  await expect(patch()).rejects.toMatchObject(refused('OOM'))
  // Once a script has written, Redis executes it to the end.
  const write = "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[2], 1) return 1"
  expect(await evaluate(write)).toBe(1)
  for (const script of [
    "local full = redis.pcall('SET', KEYS[2], 1) redis.call('DEL', KEYS[2]) return full",
    "redis.call('DEL', KEYS[2]) return redis.error_reply('OOM of its own')",
  ]) {
    await expect(evaluate(script)).rejects.toMatchObject(refused('OOM', true))
  }
  await admin.config('SET', 'maxmemory', '0')
  await admin.config('SET', 'min-replicas-to-write', '1')
  await expect(patch()).rejects.toMatchObject(refused('NOREPLICAS'))
  await admin.config('SET', 'min-replicas-to-write', '0')
  await admin.replicaof('127.0.0.1', 1)
  await expect(patch()).rejects.toMatchObject(refused('READONLY'))
})

test('if the view of an ended session cannot be undone, the error says that it may be counted', async () => {
  const redis = await redisForThisTest()
  const admin = adminForThisTest(redis.socket)
  await admin.call('ACL', 'SETUSER', 'default', '-del')
  const store = await storeOn(redis.socket)
  await expect(store.recordView(issueToken(store), 'book')).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    retrySafe: false,
    cause: { code: 'ONETRIP_REFUSED' },
  })
})
