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

const view = (url: string, token: string, headers: Record<string, string> = {}) =>
  ask(`${url}/views`, { token, body: { item: 'the-item' }, headers })

const named = (spans: readonly ReceivedSpan[], name: string) =>
  spans.filter((span) => span.name === name)
const childrenOf = (spans: readonly ReceivedSpan[], { spanId }: ReceivedSpan) =>
  spans.filter(({ parentSpanId }) => parentSpanId === spanId)

test('requests and their operations have spans', async () => {
  const receiver = await otlpReceiverForThisTest()
  const { api, url } = await apiProcessForThisTest({
    ...settings(receiver.url),
    OTEL_SERVICE_NAME: 'shop',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=letmein',
  })
  await ask(`${url}/me/views`, { token: await logIn(url, USER) })
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
  const [request, ...more] = named(spans, 'GET /me/views')
  expect(more).toEqual([])
  expect(request).toMatchObject({
    kind: SERVER,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/me/views',
      'http.response.status_code': 200,
    },
    status: OK,
    parentSpanId: '',
  })
  const [operation] = childrenOf(spans, request as ReceivedSpan)
  expect(operation).toMatchObject({
    name: 'redis operation',
    attributes: { 'db.system.name': 'redis', 'db.query.summary': 'ZREVRANGE HGET' },
  })
  // packages/otel tests the links of batches.
  expect(childrenOf(spans, operation as ReceivedSpan)).toMatchObject([{ name: 'redis batch' }])
})

test('spans of errors are marked, and spans contain no secrets', async () => {
  const receiver = await otlpReceiverForThisTest()
  const { api, url } = await apiProcessForThisTest(settings(receiver.url))
  const [kept, ended] = [await logIn(url, USER), await logIn(url, USER)]
  const id = ended.split('.')[0] ?? ''
  await fetch(`${url}/me/sessions/${id}`, { method: 'DELETE', headers: bearer(kept) })
  expect((await view(url, ended)).status).toBe(401)
  await fetch(`${url}/nowhere/${kept}?token=${kept}`)
  await redis.redis.del('login:')
  await redis.redis.set('login:', 'not a hash')
  expect((await view(url, kept)).status).toBe(503)
  await api.stop()

  const { spans } = receiver
  const names = spans.filter(({ kind }) => kind === SERVER).map(({ name }) => name)
  expect(names).toEqual([
    'POST /login',
    'POST /login',
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

test('sampling follows the traceparent of the request', async () => {
  const receiver = await otlpReceiverForThisTest()
  const { api, url } = await apiProcessForThisTest({
    ...settings(receiver.url),
    OTEL_TRACES_SAMPLER_ARG: '0',
  })
  const token = await logIn(url, USER)
  await view(url, token)
  await view(url, token, { traceparent: `00-${TRACE}-${CALLER}-01` })
  await view(url, token, { traceparent: `00-${TRACE}-${CALLER}-00` })
  await api.stop()
  const names = receiver.spans.map(({ name }) => name)
  expect(names.toSorted()).toEqual(['POST /views', 'redis batch', 'redis operation'])
  expect(new Set(receiver.spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]))
  expect(named(receiver.spans, 'POST /views')[0]?.parentSpanId).toBe(CALLER)
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

test.each([
  ['', false],
  ['http://127.0.0.1:1', true],
])('with the endpoint %j, OpenTelemetry is loaded: %j', async (endpoint, expected) => {
  // prom-client loads @opentelemetry/api in any case.
  const hook = `import { registerHooks } from 'node:module'
    registerHooks({ load(url, context, next) {
      if (/@opentelemetry.(?!api)|src.tracing/.test(url)) process.stderr.write('loaded ' + url + '\\n')
      return next(url, context)
    } })`
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hook)}`
  const lines: string[] = []
  const onLine = (line: string) => void lines.push(line)
  const api = await startApiProcess({ ...settings(endpoint), NODE_OPTIONS }, { onLine })
  await api.stop()
  expect(lines.some((line) => line.startsWith('loaded '))).toBe(expected)
})
