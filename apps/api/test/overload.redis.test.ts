import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest } from './api-process.ts'
import { appForThisTest, bearer, login } from './support.ts'

const MAX_IN_FLIGHT = 1_000 // the store's default

test('a stopped Redis: requests above the limit in flight are rejected, the others are answered later', async () => {
  const redis = await redisForThisTest()
  const app = await appForThisTest(redis.socket, { deadlineMs: 60_000 })
  const headers = bearer(await login(app))
  const view = () =>
    app.inject({ method: 'POST', url: '/views', headers, payload: { item: 'book' } })
  redis.program.signal('SIGSTOP')
  const accepted = Array.from({ length: MAX_IN_FLIGHT }, view)
  await expect.poll(() => app.store.info?.inFlight).toBe(MAX_IN_FLIGHT)
  for (const refused of await Promise.all(Array.from({ length: 50 }, view))) {
    expect(refused.statusCode).toBe(503)
    expect(refused.headers['retry-after']).toBe('1')
    expect(refused.json()).toMatchObject({
      code: 'ONETRIP_OVERLOADED',
      mayHaveWritten: false,
      retrySafe: true,
    })
  }
  expect((await app.inject('/healthz')).statusCode).toBe(200)
  redis.program.signal('SIGCONT')
  const answers = await Promise.all(accepted)
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
  expect((await view()).json()).toMatchObject({ views: MAX_IN_FLIGHT + 1 })
})

const MAX_DELAY_MS = 2_000

test('after a block, waiting requests are rejected and those in progress are answered', async () => {
  const redis = await redisForThisTest()
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    JANITOR_INTERVAL_SECONDS: '0', // its updates would count as in flight
    MAX_EVENT_LOOP_DELAY_MS: String(MAX_DELAY_MS),
  })
  const port = Number(new URL(url).port)
  const connected = async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect') // by the kernel, also while the process is stopped
    return socket
  }
  const send = async (path: string, headers: string[] = [], body?: object, open?: Socket) => {
    const socket = open ?? (await connected())
    const content = JSON.stringify(body) ?? ''
    const head = [
      `${body ? 'POST' : 'GET'} ${path} HTTP/1.1`,
      'host: 127.0.0.1',
      'connection: close',
      ...headers,
      ...(body ? ['content-type: application/json', `content-length: ${content.length}`] : []),
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n${content}`)
    return { answer: text(socket) }
  }
  const loggedIn = await (await send('/login', [], { user: 'ada' })).answer
  const token = /"token":"([^"]+)"/.exec(loggedIn)?.[1]
  const view = (open?: Socket) =>
    send('/views', [`authorization: Bearer ${token}`], { item: 'book' }, open)
  const inFlight = async () =>
    /^onetrip_store_in_flight (\d+)/m.exec(await (await send('/metrics')).answer)?.[1]

  // The process reads accepted connections in its first loop iteration; new ones only in the next.
  const accepted = async () => {
    const socket = await connected()
    socket.write('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
    await once(socket, 'data')
    return socket
  }
  const open = await Promise.all([accepted(), accepted()])

  redis.program.signal('SIGSTOP')
  const begun = await view()
  await expect.poll(inFlight).toBe('1')
  api.signal('SIGSTOP')
  const piled = [await view(open[0]), await send('/items/popular', [], undefined, open[1])]
  const exempt = [await send('/healthz'), await send('/metrics')]
  await delay(2 * MAX_DELAY_MS) // duration of the block
  api.signal('SIGCONT')
  for (const { answer } of piled) {
    expect(await answer).toMatch(/^HTTP\/1.1 503 /)
    expect(await answer).toMatch(/^retry-after: 1\r$/m)
    expect(await answer).toContain('"code":"API_OVERLOADED"')
    expect(await answer).toContain('"mayHaveWritten":false,"retrySafe":true')
  }
  for (const { answer } of exempt) expect(await answer).toMatch(/^HTTP\/1.1 200 /)
  redis.program.signal('SIGCONT')
  expect(await begun.answer).toMatch(/^HTTP\/1.1 200 .*"views":1/s)
  await expect.poll(async () => (await view()).answer).toContain('"views":2')
})
