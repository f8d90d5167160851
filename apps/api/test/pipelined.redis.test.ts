import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { appForThisTest, connectTo, listen, login } from './support.ts'

const server = redisOfThisFile()

/** Starts an API that listens, and pipelines requests on one connection to it. */
async function pipelining() {
  const app = await appForThisTest(server.socket)
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
      statuses: () => responses().map((response) => Number(response.slice(9, 12))),
      bodies: () =>
        responses().map((response) => JSON.parse(response.split('\r\n\r\n')[1] || 'null')),
    }
  }
  return { app, request, pipeline }
}

const view = () => ['POST', '/views', JSON.stringify({ item: 'book' })] as const
const inFlight = (app: FastifyInstance) => app.store.info?.inFlight

test('a request that follows a logout is rejected, and the next one has no session', async () => {
  const { request, pipeline } = await pipelining()
  const { client, statuses, bodies } = await pipeline(
    request('POST', '/logout'),
    request('GET', '/me'),
    request(...view()),
  )
  await expect.poll(statuses).toEqual([204, 409, 409])
  expect(bodies()[1]).toMatchObject({ code: 'API_PIPELINED' })
  client.write(request('GET', '/me'))
  await expect.poll(statuses).toEqual([204, 409, 409, 401])
})

test('after a rejected request, the next unsafe one is protected as well', async () => {
  const { app, request, pipeline } = await pipelining()
  const resume = server.pause()
  const { client, statuses } = await pipeline(request(...view()), request(...view()))
  await expect.poll(() => inFlight(app)).toBe(1)
  resume()
  await expect.poll(statuses).toEqual([200, 409])
  const go = server.pause()
  client.write(request('POST', '/logout') + request('GET', '/me'))
  await expect.poll(() => inFlight(app)).toBe(1)
  go()
  await expect.poll(statuses).toEqual([200, 409, 204, 409])
})

test('any pipelined requests: no read is answered with 200 for a session that has ended', async () => {
  const { app, request, pipeline } = await pipelining()
  const requests = {
    logout: request('POST', '/logout'),
    view: request(...view()),
    me: request('GET', '/me'),
    views: request('GET', '/me/views'),
  }
  const names = Object.keys(requests) as (keyof typeof requests)[]
  const property = fc.asyncProperty(
    fc.array(fc.constantFrom(...names), { minLength: 2, maxLength: 12 }),
    async (all) => {
      const token = await login(app)
      const bytes = all.map((name) => requests[name].replace(/Bearer .*/, `Bearer ${token}`))
      const { client, statuses } = await pipeline(...bytes)
      await expect.poll(() => statuses().length, { interval: 1 }).toBe(all.length)
      client.destroy()
      const logout = all.findIndex((name, index) => name === 'logout' && statuses()[index] === 204)
      if (logout >= 0) expect(statuses().slice(logout + 1)).not.toContain(200)
    },
  )
  await fc.assert(property, { numRuns: 50 })
})

test('reads run at the same time, and a write behind them is not rejected', async () => {
  const { app, request, pipeline } = await pipelining()
  const go = server.pause()
  const { statuses } = await pipeline(
    request('GET', '/me/views'),
    request('HEAD', '/me/views'),
    request(...view()),
  )
  await expect.poll(() => inFlight(app)).toBe(3)
  go()
  await expect.poll(statuses).toEqual([200, 200, 200])
})

test('after a response, also one with an error, the connection accepts requests', async () => {
  const { request, pipeline } = await pipelining()
  const { client, statuses } = await pipeline(request('POST', '/views', '{}'))
  await expect.poll(statuses).toEqual([400])
  client.write(request('PUT', '/nowhere'))
  await expect.poll(statuses).toEqual([400, 404])
  client.write(request(...view()))
  await expect.poll(statuses).toEqual([400, 404, 200])
})
