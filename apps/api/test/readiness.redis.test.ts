import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { accepts } from '@onetrip/stack/ports.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest } from './api-process.ts'
import { ask, logIn, metricsOf } from './client.ts'
import { appForThisTest, bearer, connectTo, login, view } from './support.ts'

const server = redisOfThisFile()

/** Sends requests on one keep-alive connection. Returns the status and the `connection` header. */
function keptConnection(url: string): (path: string) => Promise<[number, string]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  return async (path) => {
    const [answer] = await once(get(`${url}${path}`, { agent }), 'response')
    await answer.resume().toArray()
    return [answer.statusCode, answer.headers.connection]
  }
}

test('while Redis does not answer: not ready, one PING for concurrent probes, and alive', async () => {
  const app = await appForThisTest(server.socket, { deadlineMs: 60_000 })
  expect((await app.inject('/readyz')).statusCode).toBe(200)
  const resume = server.pause()
  const asking = Promise.all(Array.from({ length: 20 }, () => app.inject('/readyz')))
  expect((await app.inject('/healthz')).json()).toEqual({ status: 'ok' })
  expect((await app.inject('/readyz?exclude=redis')).statusCode).toBe(200)
  expect((await app.inject('/readyz?exclude=everything')).statusCode).toBe(400)
  for (const answer of await asking) {
    expect(answer.statusCode).toBe(503)
    expect(answer.headers['retry-after']).toBe('1')
  }
  expect(app.store.info?.inFlight).toBe(1)
  resume()
  await expect.poll(async () => (await app.inject('/readyz')).statusCode).toBe(200)
})

test.for([
  ['MISCONF', 200],
  ['OOM', 200],
  ['NOREPLICAS', 200],
  ['READONLY', 503],
] as const)('while Redis refuses writes (%s), /readyz returns %i', async ([kind, status]) => {
  const dir = await temporaryFolder()
  const { socket } = await redisForThisTest({ config: { dir, appendonly: 'no', save: '3600 1' } })
  const redis = new Redis(socket)
  onTestFinished(() => redis.disconnect())
  const app = await appForThisTest(socket)
  const token = await login(app)
  const ready = () => app.inject('/readyz')
  const unsaved = async () => /changes_since\w+:\d+/.exec(await redis.info('persistence'))?.[0]
  const before = await unsaved()
  expect((await ready()).json()).toEqual({ status: 'ready', strategy: 'batch' })
  expect(await unsaved()).toBe(before)

  if (kind === 'OOM') await redis.config('SET', 'maxmemory', '1')
  if (kind === 'NOREPLICAS') await redis.config('SET', 'min-replicas-to-write', '1')
  if (kind === 'READONLY') await redis.replicaof('127.0.0.1', 1)
  if (kind === 'MISCONF') {
    await rm(dir, { recursive: true })
    await redis.bgsave()
    await expect.poll(() => redis.info('persistence')).toContain('rdb_last_bgsave_status:err')
  }
  await expect.poll(ready).toMatchObject({ statusCode: status })
  expect((await view(app, token)).statusCode).toBe(503)
  // After READONLY, the store connects again.
  if (status === 503) expect((await ready()).statusCode).toBe(503)
  else {
    const degraded = { status: 'degraded', unavailable: 0, refusesWrites: kind }
    expect((await ready()).json()).toMatchObject(degraded)
    const me = await app.inject({ url: '/me', headers: bearer(token) })
    expect(me.json()).toMatchObject({ user: 'ada' }) // a session can still be checked
  }

  await redis.config('SET', 'maxmemory', '0', 'min-replicas-to-write', '0', 'save', '')
  await redis.replicaof('NO', 'ONE')
  await expect.poll(async () => (await ready()).json()).toMatchObject({ status: 'ready' })
})

test('closing: the port is closed, but a kept connection can send one more request', async () => {
  const app = await appForThisTest(server.socket, {
    deadlineMs: 60_000,
    limits: { leaveMs: 60_000 },
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const [idle, busy] = [keptConnection(url), keptConnection(url)]
  expect([await idle('/items/popular'), await busy('/items/popular')]).toEqual([
    [200, 'keep-alive'],
    [200, 'keep-alive'],
  ])
  const resume = server.pause()
  const inFlight = busy('/items/popular')
  await expect.poll(() => app.store.info?.inFlight).toBe(1)
  const closed = app.close()
  const port = Number(new URL(url).port)
  await expect.poll(() => accepts({ host: '127.0.0.1', port })).toBe(false)
  expect(await idle('/healthz')).toEqual([200, 'close'])
  resume()
  expect(await inFlight).toEqual([200, 'keep-alive'])
  expect(await busy('/items/popular')).toEqual([200, 'close'])
  await closed // long before the minute is over, since all connections are closed
})

test('closing: an idle connection is closed after leaveMs', async () => {
  const app = await appForThisTest(server.socket, { limits: { leaveMs: 10 } })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const silent = connect(Number(new URL(url).port), '127.0.0.1').resume()
  onTestFinished(() => void silent.destroy())
  expect(await keptConnection(url)('/healthz')).toEqual([200, 'keep-alive'])
  const [cut] = await Promise.all([once(silent, 'close'), app.close()])
  expect(cut).toEqual([false])
})

test('SIGTERM: connections that are not yet accepted are answered, without a drain', async () => {
  const { api, url } = await apiProcessForThisTest({ REDIS_URL: `unix://${server.socket}` })
  api.signal('SIGSTOP')
  const sockets = await Promise.all(
    Array.from({ length: 50 }, () => connectTo(Number(new URL(url).port))),
  )
  const answers = sockets.map((socket) => {
    socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')
    return text(socket).catch(String)
  })
  api.signal('SIGTERM')
  api.signal('SIGCONT')
  const lines = (await Promise.all(answers)).map((answer) => answer.split('\r\n', 1)[0])
  expect(lines).toEqual(Array(50).fill('HTTP/1.1 200 OK'))
})

test('SIGTERM: not ready at once, but requests are served until the port closes', async () => {
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${server.socket}`,
    JANITOR_INTERVAL_SECONDS: '0',
    SHUTDOWN_DRAIN_MS: '3000', // long enough for the requests below
  })
  const inFlight = async () =>
    (await metricsOf(url)).find(({ name }) => name === 'onetrip_store_in_flight')?.value
  expect(await ask(`${url}/readyz`)).toMatchObject({ status: 200 })
  const resume = server.pause()
  const before = logIn(url)
  await expect.poll(inFlight).toBeGreaterThan(0)

  api.signal('SIGTERM')
  const stopping = { status: 503, code: 'API_STOPPING', retrySafe: true }
  await expect.poll(() => ask(`${url}/readyz?exclude=redis`)).toMatchObject(stopping)
  expect(await ask(`${url}/readyz`)).toMatchObject(stopping)
  expect(await ask(`${url}/healthz`)).toMatchObject({ status: 200 })
  const during = logIn(url)
  resume()
  for (const token of [await before, await during]) {
    expect(token).toMatch(/\./)
    expect(api.lastLines.join('\n')).not.toContain(token)
  }
  expect(await api.exited).toEqual({ code: 0, signal: null })
  expect(api.lastLines.join('\n')).toContain('"signal":"SIGTERM"')
})
