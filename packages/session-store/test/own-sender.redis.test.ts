import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { batching, type Outcome, type Sender, StoreError } from '../src/index.ts'
import { adminForThisTest, newStore } from './fixture.ts'

const server = redisOfThisFile()

const senderOf = (send: Sender['send']): Sender => ({ name: 'own', send, close: async () => {} })

const noReply = async () => await new Promise<never>(() => {})

test('a store sends everything through its sender, reads its outcomes, and closes it', async () => {
  const redis = adminForThisTest(server.socket)
  let closed = false
  const sender: Sender = {
    name: 'own',
    send: ({ commands }) =>
      Promise.all(
        commands.map(([name, ...args]) =>
          redis.call(name, ...args).then(
            (reply) => reply as Outcome,
            (error: Error) => error,
          ),
        ),
      ),
    async close() {
      closed = true
    },
  }
  const store = newStore({ sender })
  await store.ready()
  expect(store).toMatchObject({ info: { sender: 'own', connections: 0 } })
  const { token } = await store.login('ada')
  expect(await store.recordView(token, 'book')).toEqual({ user: 'ada', views: 1 })
  expect(await store.janitor({ maxSessions: 1 }).runOnce()).toMatchObject({ worked: true })
  await redis.set('viewed:', 'not a sorted set')
  await expect(store.popularItems()).rejects.toMatchObject({ code: 'ONETRIP_REFUSED' })
  redis.disconnect()
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
  })
  await store.close()
  expect(closed).toBe(true)
})

test('if a sender rejects, the outcome is unknown, unless it rejects with a StoreError', async () => {
  const cause = new Error('the client is closed')
  const rejecting = newStore({ sender: senderOf(() => Promise.reject(cause)) })
  await expect(rejecting.login('ada')).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    cause,
  })
  const rejectingWithCode = newStore({ sender: senderOf(() => Promise.reject(notSent)) })
  await expect(rejectingWithCode.login('ada')).rejects.toBe(notSent)
})

const lost = new Error('the connection was lost')
const notSent = new StoreError('ONETRIP_NOT_SENT', 'there is no connection')
const refused = Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' })

test.each<[Outcome[] | undefined, object]>([
  [undefined, { code: 'ONETRIP_OUTCOME_UNKNOWN' }],
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
    const sender = senderOf((() => outcomes && Promise.resolve(outcomes)) as Sender['send'])
    for (const given of [sender, batching(sender)]) {
      const store = newStore({ sender: given, maxInFlight: 1 })
      for (const _ of [1, 2]) {
        const run = store.run({ commands, readOnly: false, read: () => undefined })
        await expect(run).rejects.toMatchObject(error)
      }
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
  const store = newStore({ sender, deadlineMs: 50 })
  await expect(store.ready(50)).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
  await Promise.all([store.close(), store.close()])
})
