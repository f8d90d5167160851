import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { operationsOf } from '../../api/test/openapi-document.ts'
import { listen } from '../../api/test/support.ts'
import { patchesOf } from '../src/server-facts.ts'
import { raceLimits } from '../src/service/race.ts'
import { demoOn, input } from './service/demo-service.ts'
import { demoForThisTest, streamFrom } from './support.ts'

const server = redisOfThisFile()

const wire = { lanes: input.lanes, distanceMs: 0 }

/** The demo with a demo service, which has short races. */
async function withService() {
  const { service, socket } = await demoOn(server, { rounds: 1 })
  const app = await demoForThisTest(server.socket, { demoSocket: socket })
  const post = async (url: string, payload: object, headers = {}) =>
    (await app.inject({ method: 'POST', url, payload, headers })).json()
  return { service, app, post }
}

const raceEvents = '/demo/race/events'

describe('with a demo service', () => {
  test('a race: limits, start, rejection of a second one, events', async () => {
    const { app, post } = await withService()
    const { race: limits } = (await app.inject('/demo')).json()
    expect(limits).toEqual({ ...raceLimits, rounds: 1, turnSeconds: 0.3 })
    const { text } = await streamFrom(app, raceEvents)
    expect(await post('/demo/race', input)).toEqual({ id: expect.any(String) })
    expect(await post('/demo/race', input)).toMatchObject({
      statusCode: 409,
      code: 'DEMO_RACE_RUNNING',
    })
    await expect.poll(text).toMatch(/event: done\ndata: .*"sentence"/)
    expect(text()).toMatch(/^event: state\ndata: {"running":false,"race":null,"last":null}\n\n/)
    expect(text()).not.toContain('event: failed')
    const [, id] = /"id":"([\w-]+)","connections"/.exec(text()) ?? []
    const page = await app.inject(`/race/${id}`)
    expect(page.headers).toMatchObject({ 'x-content-type-options': 'nosniff' })
    expect(page.body).toContain(`content="http://localhost:80/race/${id}/image.png"`)
    const types = { svg: /^<svg/, png: /^.PNG/ }
    for (const [type, start] of Object.entries(types)) {
      const { headers, body } = await app.inject(`/race/${id}/image.${type}`)
      expect([headers['content-type'], body]).toEqual([
        expect.stringContaining(`image/${type}`),
        expect.stringMatching(start),
      ])
    }
    expect((await app.inject('/race/none')).json()).toMatchObject({ statusCode: 404 })
  })

  test('the wire matches its schema', async () => {
    const { app, post } = await withService()
    const traced = await post('/demo/wire', wire)
    expect(traced.lanes).toMatchObject([
      { strategy: 'naive', connections: 1 },
      { strategy: 'batch', connections: 0, roundTrips: 1 },
    ])
    const document = (await app.inject('/openapi.json')).json()
    const operation = operationsOf(document).find(({ path }) => path === '/demo/wire')
    const documented = operation?.responses.find(({ status }) => status === 200)
    expect(documented?.content[0]?.validate(traced)).toBe('')
  })

  test('bad and cross-site requests are rejected', async () => {
    const { post, service } = await withService()
    const bad = { statusCode: 400, code: 'API_BAD_REQUEST' }
    expect(await post('/demo/race', { ...input, lanes: ['naive'] })).toMatchObject(bad)
    for (const [url, payload] of [
      ['/demo/race', input],
      ['/demo/wire', wire],
    ] as const) {
      const refused = await post(url, payload, { 'sec-fetch-site': 'cross-site' })
      expect(refused).toMatchObject({ statusCode: 403, code: 'ONETRIP_CROSS_SITE' })
    }
    expect(service.feed.running).toBe(false)
  })

  test('a stream ends when its client disconnects, and HEAD opens none', async () => {
    const { service, app } = await withService()
    const port = await listen(app)
    const open = () => streamFrom(app, raceEvents)
    const streams = await Promise.all([open(), open(), open()])
    await expect.poll(() => service.feed.listeners).toBe(3)
    for (const { request } of streams) request.destroy()
    await expect.poll(() => service.feed.listeners).toBe(0)
    const head = httpRequest({ port, path: raceEvents, method: 'HEAD' }).end()
    const [{ statusCode }] = (await once(head, 'response')) as [IncomingMessage]
    expect([statusCode, service.feed.listeners]).toEqual([404, 0])
  })

  test('shutdown ends the streams gracefully', async () => {
    const { app } = await withService()
    const { response, end, text } = await streamFrom(app, raceEvents)
    await expect.poll(text).toContain('event: state')
    await app.close()
    await end
    expect(response.complete).toBe(true)
  })

  test('after the demo service has stopped, responses contain the reason', async () => {
    const { service, app, post } = await withService()
    const { end } = await streamFrom(app, raceEvents)
    await service.close()
    await end
    const why = expect.stringContaining('demo service')
    expect((await app.inject('/demo')).json()).toMatchObject({ race: null, why })
    expect(await post('/demo/race', input)).toMatchObject({
      statusCode: 503,
      code: 'DEMO_SERVICE_FAILED',
    })
  })
})

test('without a demo service, GET /demo returns the reason why there is no race', async () => {
  const app = await demoForThisTest(server.socket)
  const why = expect.stringContaining('no demo service is running')
  expect((await app.inject('/demo')).json()).toMatchObject({ race: null, why })
  for (const answer of [
    await app.inject({ method: 'POST', url: '/demo/race', payload: input }),
    await app.inject({ method: 'POST', url: '/demo/wire', payload: wire }),
    await app.inject(raceEvents),
  ]) {
    expect(answer.json()).toMatchObject({ statusCode: 404, code: 'DEMO_NO_RACE' })
  }
})

describe('GET /demo/server', () => {
  test('sends INFO to Redis at most once a second', async () => {
    const app = await demoForThisTest(server.socket)
    const [, ioThreads] = (await server.redis.config('GET', 'io-threads')) as string[]
    await server.redis.config('RESETSTAT')
    const answers = await Promise.all(Array.from({ length: 50 }, () => app.inject('/demo/server')))
    for (const answer of answers) {
      expect(answer.json()).toEqual({
        topology: 'single',
        nodes: [server.socket],
        unavailable: [],
        build: expect.stringMatching(/^patched-[0-9a-f]{12}$/),
        patches: await patchesOf('patched'),
        version: expect.stringMatching(/^8\.0\./),
        ioThreads: Number(ioThreads),
        connectedClients: expect.any(Number),
        commandsPerSecond: expect.any(Number),
        totalConnectionsReceived: expect.any(Number),
        usedMemory: expect.any(Number),
        uptimeSeconds: expect.any(Number),
      })
    }
    expect(await server.redis.info('commandstats')).toContain('cmdstat_info:calls=1,')
  })

  test('names the patches of a build', async () => {
    const first = '0001 tell which build this is'
    expect(await patchesOf('stock')).toEqual([first])
    const second = expect.stringMatching(/^0002 inherit/)
    expect(await patchesOf('patched@0002')).toEqual([first, second])
    expect(await patchesOf('an-older-build')).toBeNull()
  })
})
