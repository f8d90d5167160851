import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { inspect, promisify } from 'node:util'
import { batching, type Sender } from '@onetrip/session-store'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import * as redis6 from 'redis'
import * as redis5 from 'redis-5'
import { describe, expect, onTestFinished, test } from 'vitest'
import { nodeRedisSender } from '../src/index.ts'
import { newStore, SECRET } from './fixture.ts'

const server = redisOfThisFile()
const decorators = { alone: (sender: Sender) => sender, batched: batching }

type Server = { socket: { path: string; tls: false } } | { url: string }

const versions = {
  'redis 6': (server: Server) => redis6.createClient({ ...server, disableOfflineQueue: true }),
  'redis 5': (server: Server) => redis5.createClient({ ...server, disableOfflineQueue: true }),
}

describe.each(Object.entries(versions))('%s', (_, createClient) => {
  async function connect(server: Server) {
    const client = createClient(server)
    client.on('error', () => {})
    onTestFinished(() => {
      if (client.isOpen) client.destroy()
    })
    await client.connect()
    return client
  }
  const connectTo = (socket: string) => connect({ socket: { path: socket, tls: false } })

  test.each(Object.entries(decorators))(
    '%s: a session from login to logout',
    async (_, decorate) => {
      const store = newStore({ sender: decorate(nodeRedisSender(await connectTo(server.socket))) })
      await store.ready()
      expect(store).toMatchObject({
        info: { sender: 'node-redis', connections: 1, ready: 1 },
      })
      const { token } = await store.login('ada')
      const views = await Promise.all(
        Array.from({ length: 20 }, () => store.recordView(token, 'book')),
      )
      expect(views.map(({ views }) => views).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 20 }, (_, index) => index + 1),
      )
      expect(await store.viewedItems(token)).toMatchObject([{ item: 'book' }])
      await store.janitor().runOnce()
      expect(await store.logout(token)).toBe(true)
      expect(await server.redis.keys('viewed:?*')).toEqual([])
    },
  )

  test('when Redis is killed, nothing hangs and nothing is counted twice', async () => {
    const durable = { appendonly: 'yes', appendfsync: 'always' } // otherwise the kill may take the login
    const redis = await redisForThisTest({ config: durable })
    const store = newStore({
      sender: batching(nodeRedisSender(await connectTo(redis.socket))),
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
    const [open, closed] = [await connectTo(redis.socket), await connectTo(redis.socket)]
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
    const clients = await Promise.all(
      [0, 5, 0].map((database) =>
        connect({ url: `redis://127.0.0.1:${sidecar.port}/${database}` }),
      ),
    )
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

  test('an error shows the name of a command, not its arguments', async () => {
    const redis = await redisForThisTest()
    const store = newStore({ sender: nodeRedisSender(await connectTo(redis.socket)) })
    const { token } = await store.login('ada')
    const shown = async (call: Promise<unknown>) =>
      inspect(await call.catch((error: unknown) => error), { depth: null, showHidden: true })
    const commands = [['NOSUCHCOMMAND', 'a-secret-key', 'a secret value']] as const
    const unknown = await shown(store.run({ commands, readOnly: false, read: () => null }))
    expect(unknown).toContain('ONETRIP_REFUSED')
    redis.program.signal('SIGSTOP')
    const lost = shown(store.recordView(token, 'a-secret-item'))
    redis.program.signal('SIGKILL')
    for (const text of [unknown, await lost]) expect(text).not.toMatch(/a.secret/)
  })

  test('watched sessions share a connection, and ends during its loss are reported', async () => {
    const store = newStore({ sender: nodeRedisSender(await connectTo(server.socket)) })
    const [gone, alive] = [await store.login('ada'), await store.login('ada')]
    const subscribers = async () =>
      String(await server.redis.client('LIST', 'TYPE', 'PUBSUB'))
        .split('\n')
        .filter(Boolean).length
    const told: string[] = []
    for (const { token } of [gone, alive]) {
      await store.watchSession(token, () => told.push(token))
    }
    expect(await subscribers()).toBe(1)
    // As if the message had been lost.
    await server.redis.hdel('login:', gone.token.split('.')[0] ?? '')
    await server.redis.client('KILL', 'TYPE', 'PUBSUB')
    await expect.poll(() => told).toEqual([gone.token])
    await store.logout(alive.token)
    await expect.poll(() => told).toEqual([gone.token, alive.token])
    await expect.poll(subscribers).toBe(0)
  })
})

test('a client that could send late is refused, and so is anything but a client', async () => {
  const queueing = redis6.createClient({ socket: { path: server.socket, tls: false } })
  expect(() => nodeRedisSender(queueing)).toThrow('set disableOfflineQueue: true')
  expect(() => nodeRedisSender(server.redis as never)).toThrow('must be a client of node-redis')
  const client = redis6.createClient({ disableOfflineQueue: true })
  expect(() => nodeRedisSender(client, { stalled: 1 } as object)).toThrow('no option stalled')
  for (const stalledAfterMs of [Number.POSITIVE_INFINITY, 3e9, -1, 'x'] as number[]) {
    expect(() => nodeRedisSender(client, { stalledAfterMs })).toThrow('stalledAfterMs must be')
  }
})

test('the README shows the example, which works', async () => {
  const example = fileURLToPath(new URL('../examples/login.ts', import.meta.url))
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  expect(readme).toContain(await readFile(example, 'utf8'))
  const { port } = await sidecarForThisTest(server.socket)
  const env = {
    PATH: process.env.PATH,
    SESSION_SECRET: SECRET,
    REDIS_URL: `redis://127.0.0.1:${port}`,
  }
  const { stdout } = await promisify(execFile)(process.execPath, [example], { env })
  expect(stdout).toBe("{ user: 'ada', views: 1 }\n")
})
