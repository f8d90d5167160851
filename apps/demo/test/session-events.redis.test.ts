import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { listen } from '../../api/test/support.ts'
import { bearer, demoForThisTest, login, streamFrom } from './support.ts'

const server = redisOfThisFile()
const path = '/demo/session/events'
const open = 'event: watching\ndata: {}\n\n'
const ended = 'event: ended\ndata: {}\n\n'

/** The event stream of a session, after its first event. */
async function streamOf(app: FastifyInstance, token: string) {
  const stream = await streamFrom(app, path, bearer(token))
  await expect.poll(stream.text).toBe(open)
  return stream
}

test('a stream ends with its session, also if another process ends it', async () => {
  const [app, other] = [await demoForThisTest(server.socket), await demoForThisTest(server.socket)]
  const [phone, laptop] = [await login(app), await login(app)]
  const [ending, staying] = [await streamOf(app, phone), await streamOf(app, laptop)]
  const url = '/me/sessions?others=true'
  await other.inject({ method: 'DELETE', url, headers: bearer(laptop) })
  await ending.end
  expect([ending.text(), ending.response.complete]).toEqual([open + ended, true])
  expect([staying.text(), staying.response.complete]).toEqual([open, false])
})

test('only users get a stream, and HEAD opens none', async () => {
  const app = await demoForThisTest(server.socket)
  const { token } = await app.store.loginGuest()
  for (const headers of [{}, bearer(token), bearer('x')]) {
    expect((await app.inject({ url: path, headers })).statusCode).toBe(401)
  }
  const own = await login(app)
  const port = await listen(app)
  const head = request({ port, path, method: 'HEAD', headers: bearer(own) }).end()
  const [{ statusCode }] = (await once(head, 'response')) as [IncomingMessage]
  expect(statusCode).toBe(404)
})

test('after its clients have left, the process does not listen to ends', async () => {
  const app = await demoForThisTest(server.socket)
  const token = await login(app)
  const subscribers = () => server.redis.call('PUBSUB', 'NUMSUB', 'login:')
  const streams = [await streamOf(app, token), await streamOf(app, token)]
  await expect.poll(subscribers).toEqual(['login:', 1])
  for (const { request } of streams) request.destroy()
  await expect.poll(subscribers).toEqual(['login:', 0])
})

test('shutdown ends a stream without saying that the session has ended', async () => {
  const app = await demoForThisTest(server.socket)
  const stream = await streamOf(app, await login(app))
  await app.close()
  await stream.end
  expect([stream.text(), stream.response.complete]).toEqual([open, true])
})

test('a stream outlives a crash of Redis, and ends with its session afterwards', async () => {
  const redis = await redisForThisTest()
  const app = await demoForThisTest(redis.socket)
  const [own, other] = [await login(app), await login(app)]
  const stream = await streamOf(app, own)
  redis.program.signal('SIGKILL')
  await redis.program.exited
  await expect.poll(async () => (await app.inject('/readyz')).statusCode).toBe(503)
  await redis.restart()
  const end = () =>
    app.inject({ method: 'DELETE', url: '/me/sessions?others=true', headers: bearer(other) })
  await expect.poll(async () => (await app.inject('/readyz')).statusCode).toBe(200)
  expect(stream.text()).toBe(open)
  expect((await end()).json()).toEqual({ ended: 1 })
  await stream.end
  expect(stream.text()).toBe(open + ended)
})
