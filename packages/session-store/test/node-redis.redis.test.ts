import { once } from 'node:events'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import { createClient } from 'redis'
import { expect, onTestFinished, test } from 'vitest'
import { nodeRedisSender } from '../src/adapters/node-redis.ts'
import { batching, type Sender } from '../src/index.ts'
import { newStore } from './fixture.ts'

const server = redisOfThisFile()

async function clientOn(socket: string) {
  const client = createClient({
    socket: { path: socket, tls: false },
    disableOfflineQueue: true,
  })
  client.on('error', () => {})
  onTestFinished(() => client.destroy())
  return await client.connect()
}

const decorators = { alone: (sender: Sender) => sender, batched: batching }

test.each(Object.entries(decorators))('%s: a session from login to logout', async (_, decorate) => {
  const store = newStore({ sender: decorate(nodeRedisSender(await clientOn(server.socket))) })
  await store.ready()
  expect(store).toMatchObject({
    info: { sender: 'node-redis', connections: 1, ready: 1 },
  })
  const { token } = await store.login('ada')
  const views = await Promise.all(Array.from({ length: 20 }, () => store.recordView(token, 'book')))
  expect(views.map(({ views }) => views).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 1),
  )
  expect(await store.viewedItems(token)).toMatchObject([{ item: 'book' }])
  await store.janitor().runOnce()
  expect(await store.logout(token)).toBe(true)
  expect(await server.redis.keys('viewed:?*')).toEqual([])
})

test('when Redis is killed, nothing hangs and nothing is counted twice', async () => {
  const redis = await redisForThisTest({ config: { appendonly: 'yes' } })
  const store = newStore({
    sender: batching(nodeRedisSender(await clientOn(redis.socket))),
    deadlineMs: 2_000,
  })
  const { token } = await store.login('ada')
  redis.program.signal('SIGSTOP')
  const inFlight = Promise.allSettled(
    Array.from({ length: 20 }, () => store.recordView(token, 'book')),
  )
  redis.program.signal('SIGKILL')
  for (const { reason } of (await inFlight) as PromiseRejectedResult[]) {
    expect(reason.code).toMatch(/^ONETRIP_(OUTCOME_UNKNOWN|NOT_SENT)$/)
  }
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: expect.stringMatching(/^ONETRIP_(OUTCOME_UNKNOWN|NOT_SENT)$/),
  })
  await redis.restart()
  await expect
    .poll(() => store.recordView(token, 'book').catch(() => undefined))
    .toMatchObject({ user: 'ada' })
  const [book] = await store.popularItems()
  expect(book?.views).toBeLessThanOrEqual(22)
})

test('a connection that does not reply is reopened, but not after the store has closed', async () => {
  const redis = await redisForThisTest()
  const [open, closed] = [await clientOn(redis.socket), await clientOn(redis.socket)]
  const storeOf = (client: typeof open) =>
    newStore({ sender: nodeRedisSender(client, { stalledAfterMs: 500 }), deadlineMs: 50 })
  const stores = [open, closed].map(storeOf)
  redis.program.signal('SIGSTOP')
  const ended = [open, closed].map((client) => once(client, 'end'))
  for (const store of stores) {
    await expect(store.popularItems()).rejects.toMatchObject({ code: 'ONETRIP_OUTCOME_UNKNOWN' })
  }
  await stores[1]?.close()
  await Promise.all(ended)
  expect([open.isOpen, closed.isOpen]).toEqual([true, false])
  redis.program.signal('SIGCONT')
  await expect.poll(() => open.isReady).toBe(true)
  expect(closed.isOpen).toBe(false)
})

test('a connection is reopened if its handshake gets no reply, but not after the store has closed', async () => {
  const sidecar = await sidecarForThisTest(server.socket)
  const clientForThisTest = async (database: number) => {
    const url = `redis://127.0.0.1:${sidecar.port}/${database}`
    const client = createClient({ url, disableOfflineQueue: true })
    client.on('error', () => {})
    onTestFinished(() => client.destroy())
    return await client.connect()
  }
  const clients = await Promise.all([0, 5, 0].map(clientForThisTest))
  const [open, inDatabase, closed] = clients.map((client) =>
    newStore({ sender: nodeRedisSender(client, { stalledAfterMs: 200 }), deadlineMs: 500 }),
  )
  const login = (store = open) =>
    store?.login('ada').then(
      () => 'ok',
      ({ code, cause }) => ({ code, reason: cause?.message }),
    )
  sidecar.breakDown()
  await sidecar.untilHanging(3)
  for (const store of [open, inDatabase, closed]) {
    await expect
      .poll(() => login(store))
      .toEqual({ code: 'ONETRIP_NOT_SENT', reason: 'no reply during the handshake' })
  }
  await closed?.close()
  await sidecar.untilHanging(5)
  sidecar.mend()
  for (const store of [open, inDatabase]) await expect.poll(() => login(store)).toBe('ok')
  expect(clients.map(({ isOpen }) => isOpen)).toEqual([true, true, false])
})

test('a client that could send late is refused, and so is anything but a client', async () => {
  const queueing = createClient({ socket: { path: server.socket, tls: false } })
  expect(() => nodeRedisSender(queueing)).toThrow('set disableOfflineQueue: true')
  expect(() => nodeRedisSender(server.redis as never)).toThrow('must be a client of node-redis')
})
