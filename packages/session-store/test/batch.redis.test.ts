import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { redisOfThisFile, testRedis } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import {
  type BatchTrace,
  batchChannel,
  createSessionStore,
  errorChannel,
  type SessionStoreOptions,
  type StoreFailure,
  safeRedisOptions,
} from '../src/core/index.ts'
import { idOf } from './fixture.ts'
import { issueToken } from './update-token.ts'

const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
const codeOf = (error: unknown) => (error as { code: string }).code

const server = redisOfThisFile()

async function storeForThisTest(options: Partial<SessionStoreOptions> = {}) {
  const where = options.client ? {} : { url: `unix://${server.socket}` }
  const store = createSessionStore({
    ...where,
    tokens,
    strategy: 'batch',
    janitor: 'elsewhere',
    ...options,
  })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

function messagesOf<Message>(channel: typeof errorChannel): Message[] {
  const messages: Message[] = []
  const listen = (message: unknown) => void messages.push(message as Message)
  channel.subscribe(listen)
  onTestFinished(() => void channel.unsubscribe(listen))
  return messages
}

test('every caller of a batch gets its own result', async () => {
  const store = await storeForThisTest()
  const sessions = await Promise.all(['ada', 'bob', 'cyd'].map((user) => store.login(user)))
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const gone = issueToken(store)
  const [ada = '', bob = '', cyd = ''] = sessions.map(({ token }) => token)
  const results = await Promise.all([
    store.recordView(ada, 'book'),
    store.recordView(bob, 'book'),
    store.recordView(gone, 'book').catch(codeOf),
    store.recordView(ada, 'pen'),
    store.checkToken(cyd).then(({ user }) => user),
    store.recordView(ada, 'book'),
    store.logout(cyd),
  ])
  expect(results).toEqual([
    { user: 'ada', views: 1 },
    { user: 'bob', views: 2 },
    'ONETRIP_UNKNOWN_SESSION',
    { user: 'ada', views: 1 },
    'cyd',
    { user: 'ada', views: 4 }, // the view in between belonged to an ended session and was undone
    true,
  ])
  expect(batches[0]).toMatchObject({ operations: 7, failed: 0 })
  expect(batches[0]?.commands).toBeLessThan(5 * 5 + 2 + 4)
  expect(await store.popularItems()).toEqual([
    { item: 'book', views: 3 },
    { item: 'pen', views: 1 },
  ])
})

test('a refused command fails only for its own callers', async () => {
  const store = await storeForThisTest()
  const [ada, bob] = await Promise.all([store.login('ada'), store.login('bob')])
  await server.redis.set(`viewed:${idOf(ada.token)}`, 'not a sorted set')
  const failures = messagesOf<StoreFailure>(errorChannel)
  const results = await Promise.all([
    store.recordView(ada.token, 'book').catch(codeOf),
    store.recordView(bob.token, 'pen').catch(codeOf),
    store.recordView(ada.token, 'pen').catch(codeOf),
  ])
  expect(results).toEqual(['ONETRIP_REFUSED', { user: 'bob', views: 1 }, 'ONETRIP_REFUSED'])
  expect(failures).toEqual([{ code: 'ONETRIP_REFUSED' }, { code: 'ONETRIP_REFUSED' }])
  await server.redis.del('login:')
  await server.redis.set('login:', 'what all of them share')
  const all = [ada, bob].map(({ token }) => store.checkToken(token).catch(codeOf))
  expect(await Promise.all(all)).toEqual(['ONETRIP_REFUSED', 'ONETRIP_REFUSED'])
})

test('more callers than fit into a batch are served by several batches', async () => {
  const store = await storeForThisTest({ poolSize: 3 })
  const { token } = await store.login('ada')
  const batches = messagesOf<BatchTrace>(batchChannel.asyncEnd)
  const views = Array.from({ length: 100 }, () => store.recordView(token, 'book'))
  const counts = (await Promise.all(views)).map(({ views }) => views)
  expect(counts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
  const sizes = batches.map(({ operations }) => operations).toSorted((a, b) => b - a)
  expect(sizes).toEqual([16, 16, 16, 16, 16, 16, 4])
})

test('any text arrives unchanged', async () => {
  const store = await storeForThisTest()
  const users = ['ada', 'Zoë', '中文', '🦊🦊', '"\\$5', '*3']
  const sessions = await Promise.all(users.map((user) => store.login(user)))
  const views = await Promise.all(
    sessions.map(({ token }, index) => store.recordView(token, `${users[index]} – item`)),
  )
  expect(views.map(({ user }) => user)).toEqual(users)
  const items = (await store.popularItems(100)).map(({ item }) => item)
  expect(new Set(items)).toEqual(new Set(users.map((user) => `${user} – item`)))
})

test('an injected client is used and not closed', async () => {
  const client = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  const store = createSessionStore({ client, tokens, janitor: 'elsewhere' })
  await store.ready()
  await store.login('ada')
  await store.close()
  expect(await client.ping()).toBe('PONG')
})

/** A server that answers ioredis's handshake like Redis, and dies in the middle of the next commands. */
async function dyingServer(replyBeforeDeath: string): Promise<{ url: string; deaths(): number }> {
  let deaths = 0
  const sockets = new Set<Socket>()
  const dying = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      const text = data.toString()
      if (text.includes('ZADD')) {
        deaths++
        socket.write(replyBeforeDeath, () => socket.destroy())
        return
      }
      for (const command of text.match(/\*\d+\r\n\$\d+\r\n(\w+)/g) ?? []) {
        const info = 'redis_version:8.0.6\r\nloading:0'
        if (/INFO$/i.test(command)) socket.write(`$${info.length}\r\n${info}\r\n`)
        else socket.write(/TYPE$/i.test(command) ? '+none\r\n' : '+OK\r\n')
      }
    })
  })
  dying.listen(0, '127.0.0.1')
  await once(dying, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    dying.close()
  })
  const { port } = dying.address() as { port: number }
  return { url: `redis://127.0.0.1:${port}`, deaths: () => deaths }
}

test.each(['sequential', 'pipeline', 'batch'] as const)(
  '%s: a server that dies in the middle of a pipeline: all promises settle, nothing is sent twice',
  async (strategy) => {
    const dying = await dyingServer(':0\r\n:0\r\n')
    const store = createSessionStore({
      url: dying.url,
      tokens,
      strategy,
      deadlineMs: 20_000,
      janitor: 'elsewhere',
    })
    onTestFinished(() => store.close())
    await store.ready()
    const views = Array.from({ length: 20 }, () => store.recordView(issueToken(store), 'book'))
    const results = await Promise.all(views.map((view) => view.then(() => 'ok', codeOf)))
    expect(new Set(results)).toEqual(new Set(['ONETRIP_OUTCOME_UNKNOWN']))
    await store.ready() // the server is back, and nothing was resent
    expect(dying.deaths()).toBe(1)
  },
)

test('a connection that does not reply for too long is reopened', async () => {
  const own = await testRedis()
  onTestFinished(() => own.stop())
  const url = `unix://${own.socket}`
  const { token } = await (await storeForThisTest({ url })).login('ada')
  const store = await storeForThisTest({ url, deadlineMs: 100 })
  const admin = new Redis(own.socket)
  onTestFinished(() => admin.disconnect())
  await admin.ping()
  own.program.signal('SIGSTOP')
  await expect(store.recordView(token, 'book')).rejects.toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
  })
  await expect.poll(() => store.info?.ready).toBe(0) // closed after five deadlines
  own.program.signal('SIGCONT')
  await expect
    .poll(() => store.recordView(token, 'book').catch(codeOf))
    .toMatchObject({ user: 'ada' })
})
