import { freePorts } from '@onetrip/stack/ports.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { serve } from '@onetrip/stack/testing/serve.ts'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest, startApiProcess } from './api-process.ts'
import { ask, logIn } from './client.ts'
import { otlpReceiverForThisTest, type ReceivedSpan } from './otlp-receiver.ts'
import { bearer } from './support.ts'

const redis = redisOfThisFile()

const SERVER = 2
const [OK, ERROR] = [1, 2]
const [TRACE, CALLER] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']

const settings = (endpoint: string) => ({
  REDIS_URL: `unix://${redis.socket}`,
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  JANITOR_INTERVAL_SECONDS: '0',
})

const USER = 'ada-the-user'

const view = (url: string, token: string) =>
  ask(`${url}/views`, { token, body: { item: 'the-item' } })

const named = (spans: readonly ReceivedSpan[], name: string) =>
  spans.filter((span) => span.name === name)
const childrenOf = (spans: readonly ReceivedSpan[], { spanId }: ReceivedSpan) =>
  spans.filter(({ parentSpanId }) => parentSpanId === spanId)

test('requests and their operations have spans, errors are marked, and no secret is in them', async () => {
  const receiver = await otlpReceiverForThisTest()
  const { api, url } = await apiProcessForThisTest({
    ...settings(receiver.url),
    OTEL_SERVICE_NAME: 'shop',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=letmein',
  })
  const [kept, ended] = [await logIn(url, USER), await logIn(url, USER)]
  await ask(`${url}/me/views`, {
    token: kept,
    headers: { traceparent: `00-${TRACE}-${CALLER}-01` },
  })
  const id = ended.split('.')[0] ?? ''
  await fetch(`${url}/me/sessions/${id}`, { method: 'DELETE', headers: bearer(kept) })
  expect((await view(url, ended)).status).toBe(401)
  await fetch(`${url}/nowhere/${kept}?token=${kept}`)
  await redis.redis.del('login:')
  await redis.redis.set('login:', 'not a hash')
  expect((await view(url, kept)).status).toBe(503)
  expect(await api.stop()).toEqual({ code: 0, signal: null })

  const { spans, headers } = receiver
  expect(headers[0]).toMatchObject({
    'x-api-key': 'letmein',
    'content-type': 'application/x-protobuf',
  })
  expect(spans[0]?.resource).toMatchObject({
    'service.name': 'shop',
    'deployment.environment.name': 'test',
    'process.pid': api.pid,
  })
  const [request] = named(spans, 'GET /me/views')
  const [method, route] = ['GET', '/me/views']
  const attributes = { 'http.request.method': method, 'http.route': route }
  expect(request).toMatchObject({
    kind: SERVER,
    attributes: { ...attributes, 'http.response.status_code': 200 },
    status: OK,
    traceId: TRACE,
    parentSpanId: CALLER,
  })
  const [read] = childrenOf(spans, request as ReceivedSpan)
  expect(read).toMatchObject({
    name: 'redis operation',
    attributes: { 'db.system.name': 'redis', 'db.query.summary': 'ZREVRANGE HGET' },
  })
  // packages/otel tests the links of batches.
  expect(childrenOf(spans, read as ReceivedSpan)).toMatchObject([{ name: 'redis batch' }])
  const names = spans.filter(({ kind }) => kind === SERVER).map(({ name }) => name)
  expect(names).toEqual([
    'POST /login',
    'POST /login',
    'GET /me/views',
    'DELETE /me/sessions/:id',
    'POST /views',
    'GET',
    'POST /views',
  ])
  const [gone, refused] = named(spans, 'POST /views')
  expect(gone).toMatchObject({ status: OK, attributes: { 'http.response.status_code': 401 } })
  expect(refused).toMatchObject({
    status: ERROR,
    attributes: { 'http.response.status_code': 503 },
  })
  const lines = api.lastLines.filter((line) => line.includes('ONETRIP_REFUSED'))
  expect(lines).toEqual([expect.stringContaining(`"trace_id":"${refused?.traceId}"`)])
  const [operation] = childrenOf(spans, refused as ReceivedSpan)
  expect(operation).toMatchObject({
    status: ERROR,
    attributes: { 'error.type': 'ONETRIP_REFUSED' },
  })
  expect(childrenOf(spans, operation as ReceivedSpan)).toMatchObject([{ status: ERROR }])
  for (const secret of [USER, 'the-item', ...kept.split('.'), ...ended.split('.')]) {
    expect(receiver.bytes.includes(secret), secret).toBe(false)
  }
})

test('if the collector is down, one line is logged', async () => {
  const [port] = await freePorts(1)
  const lines: string[] = []
  const api = await startApiProcess(
    {
      ...settings(`http://127.0.0.1:${port}`),
      OTEL_EXPORTER_OTLP_TIMEOUT: '100',
    },
    { onLine: (line) => lines.push(line) },
  )
  onTestFinished(async () => void (await api.stop()))
  const url = /listening at (http:[^"]+)/.exec(lines.join('\n'))?.[1] ?? ''
  const token = await logIn(url, USER)
  const problems = () => lines.filter((line) => line.includes('traces cannot be exported'))
  await expect.poll(problems).toHaveLength(1)
  expect(problems()[0]).toMatch(/"level":40.*"reason":"[^"]*ECONNREFUSED/)
  expect((await view(url, token)).status).toBe(200)
  expect(await api.stop()).toEqual({ code: 0, signal: null }) // the last export fails too
  expect(problems()).toHaveLength(1)
})

test('a collector that never answers does not prevent the shutdown', async () => {
  const asked = Promise.withResolvers<void>()
  const collector = await serve(() => asked.resolve())
  const { api, url } = await apiProcessForThisTest(settings(collector))
  await logIn(url, USER)
  const end = api.stop(30_000)
  await asked.promise
  expect(await end).toEqual({ code: 0, signal: null })
})
