import { once } from 'node:events'
import type { Socket } from 'node:net'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import type { Limits } from '../src/limits.ts'
import { apiProcessForThisTest } from './api-process.ts'
import { appForThisTest, connectTo, listen } from './support.ts'

const server = redisOfThisFile()

/** Starts an API with these limits on a free port. */
async function listening(limits: Partial<Limits>) {
  const app = await appForThisTest(server.socket, { limits })
  return { app, port: await listen(app) }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`

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

const openConnections = (app: FastifyInstance) =>
  new Promise<number>((resolve, reject) => {
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })

test.for([
  ['pipelines large responses', LARGE, 50, false],
  ['pipelines small responses', SMALL, 5_000, false],
  ['keeps sending', LARGE, 50, true],
] as const)('a client that %s and never reads is disconnected', async ([, path, count, drips]) => {
  const { app, port } = await listening({ stalledMs: 200 })
  const socket = await pipelineUnread(port, path, count)
  const dripping = setInterval(() => drips && socket.write(get('/healthz')), 10)
  onTestFinished(() => clearInterval(dripping))
  await expect.poll(() => openConnections(app)).toBe(0)
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
  })
  for (const bytes of Object.values(unfinished)) {
    const socket = await connectTo(Number(new URL(url).port))
    socket.write(bytes)
    await once(socket, 'readable')
  }
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
})
