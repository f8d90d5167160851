import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import type { AppOptions } from '../src/app.ts'
import { appForThisTest, connectTo, listen, login } from './support.ts'

const server = redisOfThisFile()

/** Starts an API that listens, and pipelines requests on one connection to it. */
async function pipelining(
  options: Partial<AppOptions> = {},
  prepare: (app: FastifyInstance) => void = () => undefined,
) {
  const app = await appForThisTest(server.socket, options)
  prepare(app)
  const port = await listen(app)
  const token = await login(app)

  const request = (method: string, path: string, body = '') =>
    [
      `${method} ${path} HTTP/1.1`,
      'host: a',
      `authorization: Bearer ${token}`,
      ...(body && ['content-type: application/json', `content-length: ${body.length}`]),
      '',
      body,
    ].join('\r\n')

  async function pipeline(...requests: string[]) {
    const client = await connectTo(port)
    let text = ''
    client.on('data', (chunk) => {
      text += chunk
    })
    client.write(requests.join(''))
    const responses = () => text.split(/(?=HTTP\/1\.1 \d)/).filter((part) => part !== '')
    return {
      client,
      responses,
      statuses: () => responses().map((response) => Number(response.slice(9, 12))),
      bodies: () =>
        responses().map((response) => JSON.parse(response.split('\r\n\r\n')[1] || 'null')),
    }
  }
  return { app, token, request, pipeline }
}

const view = (item = 'book') => ['POST', '/views', JSON.stringify({ item })] as const
const inFlight = (app: FastifyInstance) => app.store.info?.inFlight

test('a request that follows a logout has no session', async () => {
  const { request, pipeline } = await pipelining()
  const { statuses } = await pipeline(request('POST', '/logout'), request('GET', '/me'))
  await expect.poll(statuses).toEqual([204, 401])
})

test('any requests have the results that they would have one after the other', async () => {
  const { request, pipeline } = await pipelining()
  const session = { theme: '', version: 0, views: 0 }
  const step = {
    patch() {
      session.version++
      session.theme = `theme ${session.version}`
      return [
        request('PATCH', '/me/data', JSON.stringify({ theme: session.theme })),
        { version: session.version },
      ] as const
    },
    view() {
      session.views++
      return [request(...view()), { views: session.views }] as const
    },
    data() {
      const { theme, version } = session
      return [request('GET', '/me/data'), { fields: theme ? { theme } : {}, version }] as const
    },
  }
  const names = fc.constantFrom('patch' as const, 'view' as const, 'data' as const)
  const property = fc.asyncProperty(
    fc.array(names, { minLength: 2, maxLength: 20 }),
    async (all) => {
      const steps = all.map((name) => step[name]())
      const { bodies } = await pipeline(...steps.map(([bytes]) => bytes))
      await expect.poll(() => bodies().length, { interval: 1 }).toBe(all.length)
      expect(bodies()).toMatchObject(steps.map(([, body]) => body))
    },
  )
  await fc.assert(property, { numRuns: 30 })
})

test('reads run at the same time; a write waits for them, and later reads for it', async () => {
  const { app, request, pipeline } = await pipelining()
  const go = server.pause()
  const reads = [request('GET', '/me/views'), request('HEAD', '/me/views')]
  const { bodies, statuses } = await pipeline(
    ...reads,
    request(...view()),
    ...reads,
    reads[0] ?? '',
  )
  await expect.poll(() => inFlight(app)).toBe(2)
  go()
  await expect.poll(() => statuses()).toEqual([200, 200, 200, 200, 200, 200])
  const items = bodies().flatMap((body) => (body?.items ? [body.items.length] : []))
  expect(items).toEqual([0, 1, 1])
})

test('a request that fails does not stop those behind it', async () => {
  const { request, pipeline } = await pipelining()
  const { statuses } = await pipeline(
    request('POST', '/views', '{}'),
    request('PUT', '/nowhere'),
    request(...view('a\u0000')),
    request('POST', '/nowhere%'),
    request(...view()),
    request('GET', '/me/views'),
  )
  await expect.poll(statuses).toEqual([400, 404, 400, 400, 200, 200])
})

test('a connection that ends with an error response drops the requests behind it', async () => {
  const { app, request, pipeline } = await pipelining()
  const { client, statuses } = await pipeline(
    request('POST', '/views', `{"item":"${'x'.repeat(5_000)}"}`),
    request('POST', '/logout'),
  )
  await once(client, 'close')
  expect(statuses()).toEqual([413])
  expect(await app.store.recentSessions()).toHaveLength(1)
})

test('waiting requests count for the limit, and those above it are rejected in their order', async () => {
  const limits = { pipelinedRequests: 3 }
  const { app, request, pipeline } = await pipelining({ limits })
  const go = server.pause()
  const { client, statuses } = await pipeline(...Array(5).fill(request(...view())))
  await expect.poll(() => inFlight(app)).toBe(1)
  go()
  await expect.poll(statuses).toEqual([200, 200, 200, 429, 429])
  client.write(request(...view()))
  await expect.poll(statuses).toEqual([200, 200, 200, 429, 429, 200])
})

test('if the client disconnects, the requests that wait are dropped', async () => {
  const { app, token, request, pipeline } = await pipelining()
  const go = server.pause()
  const closed = once(app.server, 'connection').then(([socket]) => once(socket as Socket, 'close'))
  const { client } = await pipeline(request(...view()), request('POST', '/logout'))
  await expect.poll(() => inFlight(app)).toBe(1)
  client.destroy()
  await closed
  go()
  await expect.poll(() => inFlight(app)).toBe(0)
  expect(await app.store.checkToken(token)).toMatchObject({ user: 'ada' })
  await app.close()
})

test('a shutdown answers the requests that wait', async () => {
  const limits = { leaveMs: 1, flushMs: 0 }
  let preClosed: Promise<unknown> | undefined
  const { app, request, pipeline } = await pipelining({ limits }, (app) => {
    preClosed = new Promise<void>((resolve) => {
      app.addHook('preClose', async () => resolve())
    })
  })
  const go = server.pause()
  const { statuses } = await pipeline(request(...view()), request('GET', '/me/views'))
  await expect.poll(() => inFlight(app)).toBe(1)
  const closed = app.close()
  await preClosed
  go()
  await expect.poll(statuses).toEqual([200, 200])
  await closed
})

test('a request behind a stream waits for its end', async () => {
  const stream = new PassThrough()
  const { request, pipeline } = await pipelining({}, (app) => {
    app.get('/stream', (_request, reply) => reply.send(stream))
  })
  stream.write('begin ')
  const { client, responses } = await pipeline(request('GET', '/stream'), request(...view()))
  await once(client, 'data')
  expect(await server.redis.exists('viewed:')).toBe(0)
  stream.end('end')
  await expect.poll(() => responses().length).toBe(2)
  expect(responses()[1]).toContain('"views":1')
})

test('a request that has waited keeps its own asynchronous context', async () => {
  const contexts = new AsyncLocalStorage<string>()
  const { request, pipeline } = await pipelining({
    traceRequests: async (app) => {
      app.addHook('onRequest', ({ url }, _reply, done) => contexts.run(url, done))
    },
    publicRoutes: async (app) => {
      app.post('/own', async () => ({ context: contexts.getStore() }))
    },
  })
  const { bodies } = await pipeline(request(...view()), request('POST', '/own'))
  await expect.poll(() => bodies().length).toBe(2)
  expect(bodies()[1]).toEqual({ context: '/own' })
})
