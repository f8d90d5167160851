import { once } from 'node:events'
import { get, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { strategyNames } from '@onetrip/session-store'
import { unixUrl } from '@onetrip/stack/address.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { operationsOf } from '../../api/test/openapi-document.ts'
import { raceLimits } from '../src/service/race.ts'
import { openDemoService } from '../src/service/service.ts'
import { demoForThisTest } from './support.ts'

const server = redisOfThisFile()

const race = { lanes: ['naive', 'batch'], connections: 8, distanceMs: 0 }

/** A real demo service with short races. */
async function demoService() {
  const socket = join(await temporaryFolder(), 'demo.sock')
  const url = unixUrl(server.socket)
  const service = await openDemoService({
    socket,
    redis: { url },
    monitorUrls: [url],
    sessionSecret: newSecret(),
    limits: { ...raceLimits, rounds: 1, turnSeconds: 0.3 },
  })
  onTestFinished(() => service.close())
  return { socket, service }
}

async function listening(app: FastifyInstance): Promise<string> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
}

/** The event stream, after its response head has arrived. */
async function streamFrom(url: string) {
  const request = get(`${url}/demo/race/events`)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  response.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  onTestFinished(() => void request.destroy())
  return { request, response, text: () => text }
}

describe('with a demo service', () => {
  test('a race: limits, start, rejection of a second one, events', async () => {
    const { socket } = await demoService()
    const app = await demoForThisTest(server.socket, { demoSocket: socket })
    const url = await listening(app)
    const { race: limits } = (await app.inject('/demo')).json()
    expect(limits).toEqual({ ...raceLimits, rounds: 1, turnSeconds: 0.3 })

    const { response, text } = await streamFrom(url)
    expect(response.statusCode).toBe(200)
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
    })
    const start = () => app.inject({ method: 'POST', url: '/demo/race', payload: race })
    const started = await start()
    expect([started.statusCode, started.json()]).toEqual([202, { id: expect.any(String) }])
    const second = await start()
    expect(second.json()).toMatchObject({
      statusCode: 409,
      code: 'DEMO_RACE_RUNNING',
      error: 'Conflict',
      message: expect.stringContaining('A race is running'),
    })
    await expect.poll(text).toMatch(/event: done\ndata: .*"sentence"/)
    expect(text()).toMatch(/^event: state\ndata: {"running":false,"race":null,"last":null}\n\n/)
    expect(text()).not.toContain('event: failed')
  })

  test('the wire matches its schema', async () => {
    const { socket } = await demoService()
    const app = await demoForThisTest(server.socket, { demoSocket: socket })
    const payload = { lanes: ['naive', 'batch'], distanceMs: 0 }
    const answer = await app.inject({ method: 'POST', url: '/demo/wire', payload })
    expect(answer.statusCode).toBe(200)
    const { lanes } = answer.json()
    expect(lanes).toMatchObject([
      { strategy: 'naive', connections: 1 },
      { strategy: 'batch', connections: 0, roundTrips: 1 },
    ])
    const document = (await app.inject('/openapi.json')).json()
    const operation = operationsOf(document).find(({ path }) => path === '/demo/wire')
    const documented = operation?.responses.find(({ status }) => status === 200)
    expect(documented?.content[0]?.validate(answer.json())).toBe('')
  })

  test.for([
    [{ ...race, connections: 1_000 }, 'connections must be a whole number from 1 to 256.'],
    [{ ...race, distanceMs: 2 }, 'distanceMs must be one of'],
    [{ ...race, lanes: ['naive', 'bogus'] }, 'lanes must be two of naive, '],
    [{ ...race, lanes: ['naive'] }, 'body/lanes'],
  ] as const)('refuses %j with 400', async ([payload, message]) => {
    const { socket } = await demoService()
    const app = await demoForThisTest(server.socket, { demoSocket: socket })
    const answer = await app.inject({ method: 'POST', url: '/demo/race', payload })
    expect(answer.json()).toMatchObject({
      statusCode: 400,
      code: 'API_BAD_REQUEST',
      message: expect.stringContaining(message),
    })
  })

  test.for(['/demo/race', '/demo/wire'])('%s rejects cross-site requests', async (url) => {
    const { socket, service } = await demoService()
    const app = await demoForThisTest(server.socket, { demoSocket: socket })
    const headers = { 'sec-fetch-site': 'cross-site' }
    const { connections, ...wire } = race
    const payload = url === '/demo/race' ? { ...wire, connections } : wire
    const answer = await app.inject({ method: 'POST', url, payload, headers })
    expect(answer.json()).toMatchObject({ statusCode: 403, code: 'ONETRIP_CROSS_SITE' })
    expect(service.feed.running).toBe(false)
  })

  test('a stream ends when its client disconnects', async () => {
    const { socket, service } = await demoService()
    const url = await listening(await demoForThisTest(server.socket, { demoSocket: socket }))
    const streams = await Promise.all(Array.from({ length: 5 }, () => streamFrom(url)))
    await expect.poll(() => service.feed.listeners).toBe(5)
    for (const { request } of streams) request.destroy()
    await expect.poll(() => service.feed.listeners).toBe(0)
  })

  test('HEAD does not open a stream', async () => {
    const { socket, service } = await demoService()
    const url = await listening(await demoForThisTest(server.socket, { demoSocket: socket }))
    const head = httpRequest(`${url}/demo/race/events`, { method: 'HEAD' }).end()
    const [{ statusCode }] = (await once(head, 'response')) as [IncomingMessage]
    expect(statusCode).toBe(405)
    expect(service.feed.listeners).toBe(0)
  })

  test('shutdown ends the streams gracefully', async () => {
    const { socket } = await demoService()
    const app = await demoForThisTest(server.socket, { demoSocket: socket })
    const { response, text } = await streamFrom(await listening(app))
    await expect.poll(text).toContain('event: state')
    const ended = once(response, 'end')
    await app.close()
    await ended
    expect(response.complete).toBe(true)
  })

  test('after the demo service has stopped, responses contain the reason', async () => {
    const { socket, service } = await demoService()
    const app = await demoForThisTest(server.socket, { demoSocket: socket })
    const { response } = await streamFrom(await listening(app))
    const ended = once(response, 'end')
    await service.close()
    await ended
    const message = 'the demo service does not answer'
    expect((await app.inject('/demo')).json()).toMatchObject({ race: null, why: message })
    const answer = await app.inject({ method: 'POST', url: '/demo/race', payload: race })
    expect(answer.json()).toMatchObject({ statusCode: 503, code: 'DEMO_SERVICE_FAILED', message })
  })
})

test('without a demo service, GET /demo returns the reason why there is no race', async () => {
  const app = await demoForThisTest(server.socket)
  expect((await app.inject('/demo')).json()).toMatchObject({
    race: null,
    why: expect.stringContaining('no demo service is running'),
  })
  const { connections, ...wire } = race
  for (const answer of [
    await app.inject({ method: 'POST', url: '/demo/race', payload: { ...wire, connections } }),
    await app.inject({ method: 'POST', url: '/demo/wire', payload: wire }),
    await app.inject('/demo/race/events'),
  ]) {
    expect(answer.json()).toMatchObject({ statusCode: 404, code: 'DEMO_NO_RACE' })
  }
})

describe('GET /demo/server', () => {
  test('sends INFO to Redis at most once a second', async () => {
    const app = await demoForThisTest(server.socket)
    await server.redis.config('RESETSTAT')
    const answers = await Promise.all(Array.from({ length: 50 }, () => app.inject('/demo/server')))
    for (const answer of answers) {
      expect(answer.json()).toEqual({
        topology: 'single',
        nodes: [server.socket],
        unavailable: [],
        build: expect.stringMatching(/^patched-[0-9a-f]{12}$/),
        version: expect.stringMatching(/^8\.0\./),
        ioThreads: expect.any(Number),
        connectedClients: expect.any(Number),
        commandsPerSecond: expect.any(Number),
        totalConnectionsReceived: expect.any(Number),
        usedMemory: expect.any(Number),
        uptimeSeconds: expect.any(Number),
      })
    }
    const calls = /cmdstat_info:calls=(\d+)/.exec(await server.redis.info('commandstats'))?.[1]
    expect(Number(calls)).toBe(1)
  })

  test.for(strategyNames)('with the strategy %s', async (strategy) => {
    const app = await demoForThisTest(server.socket, { strategy })
    const answer = await app.inject('/demo/server')
    expect([answer.statusCode, answer.json().ioThreads]).toEqual([200, 1])
  })

  test('503 while Redis is down, and 200 when it is back', async () => {
    const redis = await redisForThisTest()
    const app = await demoForThisTest(redis.socket)
    redis.program.signal('SIGKILL')
    await redis.program.exited
    await expect
      .poll(async () => (await app.inject('/demo/server')).json())
      .toMatchObject({ statusCode: 503, code: 'ONETRIP_NOT_SENT' })
    await redis.restart()
    await expect.poll(async () => (await app.inject('/demo/server')).statusCode).toBe(200)
  })
})
