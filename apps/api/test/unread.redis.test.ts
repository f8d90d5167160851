import { once } from 'node:events'
import type { Socket } from 'node:net'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Limits } from '../src/limits.ts'
import { apiProcessForThisTest } from './api-process.ts'
import { appForThisTest, connectTo, listen, login } from './support.ts'

const server = redisOfThisFile()

/** Starts an API with these limits on a free port. */
async function listening(limits: Partial<Limits>) {
  const app = await appForThisTest(server.socket, { limits })
  return { app, port: await listen(app) }
}

const get = (path: string, ...headers: string[]) =>
  `GET ${path} HTTP/1.1\r\nhost: a\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`

/** Larger than all buffers on the way: 1.5 MB, streamed. */
const LARGE = '/docs/static/swagger-ui-bundle.js'
/** Small, sent in one write. */
const SMALL = '/openapi.json'

/** Pipelines requests and does not read the responses. Resolves when the first one has arrived. */
async function pipelineUnread(port: number, path: string, count: number): Promise<Socket> {
  const socket = await connectTo(port)
  socket.write(get(path).repeat(count))
  await once(socket, 'readable') // arrived, but not read
  return socket
}

/** The first chunk that the server sends; empty if it closes the connection. */
async function firstOf(socket: Socket): Promise<string> {
  const [chunk = ''] = await Promise.race([
    once(socket, 'data'),
    once(socket, 'close').then(() => []),
  ])
  return String(chunk)
}

const openConnections = (app: FastifyInstance) =>
  new Promise<number>((resolve, reject) => {
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })

test.each([
  ['large responses', LARGE, 50],
  ['small responses', SMALL, 5_000],
])('a client that pipelines and never reads is disconnected: %s', async (_what, path, count) => {
  const { app, port } = await listening({ stalledMs: 100, pipelinedRequests: 10_000 })
  await pipelineUnread(port, path, count)
  await expect.poll(() => openConnections(app)).toBe(0)
})

test('a client that keeps sending and never reads is disconnected', async () => {
  const { app, port } = await listening({ stalledMs: 200 })
  const socket = await pipelineUnread(port, LARGE, 50)
  const dripping = setInterval(() => socket.write(get('/healthz')), 10)
  onTestFinished(() => clearInterval(dripping))
  await expect.poll(() => openConnections(app)).toBe(0)
})

test('a client that waits for its response is not disconnected', async () => {
  const { app, port } = await listening({ stalledMs: 100 })
  const token = await login(app)
  const resume = server.pause()
  const waiting = await connectTo(port)
  waiting.write(get('/me/views', `authorization: Bearer ${token}`))
  await expect.poll(() => openConnections(app)).toBe(1)
  await pipelineUnread(port, LARGE, 50)
  await expect.poll(() => openConnections(app)).toBe(1) // the other connection was closed
  resume()
  expect(await firstOf(waiting)).toMatch(/^HTTP\/1.1 200 /)
})

test('a client that reads one large write slowly is not disconnected', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const app = await appForThisTest(server.socket, { limits: { stalledMs: 1_000 } })
  app.get('/large', async () => Buffer.alloc(64 * 2 ** 20))
  const port = await listen(app)
  const [[served], socket] = await Promise.all([
    once(app.server, 'connection') as Promise<[Socket & { _handle: { writeQueueSize: number } }]>,
    pipelineUnread(port, '/large', 1),
  ])
  const unwritten = served.writableLength
  for (let look = 0; look < 3; look++) {
    vi.advanceTimersByTime(1_000)
    expect(served.destroyed).toBe(false)
    const before = served._handle.writeQueueSize
    await expect
      .poll(
        () => {
          socket.read()
          return served._handle.writeQueueSize
        },
        { interval: 1 },
      )
      .toBeLessThan(before)
  }
  expect(served.writableLength).toBe(unwritten) // one write, not yet done
  vi.advanceTimersByTime(2_000)
  expect(served.destroyed).toBe(true)
})

const unfinished = {
  'does not read large responses': get(LARGE).repeat(50),
  'does not read small responses': get(SMALL).repeat(5_000),
  'has sent half a head': `${get('/healthz')}GET /hea`,
  'has sent half a body': `${get('/healthz')}POST /login HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{`,
}

test('SIGTERM: the process exits with 0 although clients do not read, or have sent half a request', async () => {
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${server.socket}`,
    SHUTDOWN_GRACE_MS: '60000', // after which it would exit with 1
  })
  for (const bytes of Object.values(unfinished)) {
    const socket = await connectTo(Number(new URL(url).port))
    socket.write(bytes)
    await once(socket, 'readable')
  }
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
})
