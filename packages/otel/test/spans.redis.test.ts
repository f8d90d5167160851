import { SessionStore } from '@onetrip/session-store'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { type ReadableSpan, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { traceStore } from '../src/index.ts'

const server = redisOfThisFile()

context.setGlobalContextManager(new AsyncLocalStorageContextManager())
afterAll(() => context.disable())

function tracedForThisTest() {
  const ended: ReadableSpan[] = []
  const collect: SpanProcessor = {
    onStart: () => undefined,
    onEnd: (span) => void ended.push(span),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  }
  const tracer = new TracerProvider({ spanProcessors: [collect] }).getTracer('test')
  const stop = traceStore(tracer)
  onTestFinished(stop)
  const named = (name: string) => ended.filter((span) => span.name === name)
  /** Calls this while a span is active, as while a request is handled. */
  const request = async (call: () => Promise<unknown>) => {
    const span = tracer.startSpan('request')
    await context.with(trace.setSpan(context.active(), span), call)
  }
  return { stop, ended, named, request }
}

async function storeForThisTest() {
  const store = new SessionStore({
    redis: `unix://${server.socket}`,
    tokens: { secrets: ['a-secret-for-tests-a-secret-for-tests'] },
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

test('operations of traced requests have spans, and share that of their batch', async () => {
  const store = await storeForThisTest()
  const { token } = await store.login('ada')
  const { stop, ended, named, request } = tracedForThisTest()
  await store.recordView(token, 'book')
  expect(ended).toEqual([])

  const view = () => request(() => store.recordView(token, 'a-secret-item'))
  await Promise.all([view(), view()])
  const operations = named('redis operation')
  const [batch, ...others] = named('redis batch')
  expect([operations.length, others.length]).toEqual([2, 0])
  const summary = expect.stringMatching(/\bZINCRBY\b/)
  expect(operations[0]?.attributes).toMatchObject({ 'db.query.summary': summary })
  expect(batch?.attributes).toMatchObject({ 'onetrip.batch.operations': 2 })
  const id = (span: ReadableSpan | undefined) => span?.spanContext().spanId
  expect(batch?.parentSpanContext?.spanId).toBe(id(operations[0]))
  expect(batch?.links.map((link) => link.context.spanId)).toEqual(operations.map(id))
  for (const { links } of operations) {
    expect(links.map((link) => link.context.spanId)).toEqual([id(batch)])
  }
  expect(JSON.stringify(ended.map(({ attributes }) => attributes))).not.toContain('secret')

  stop()
  await view()
  expect(ended).toHaveLength(3)
})

test('a failed operation has the code of its error', async () => {
  const store = await storeForThisTest()
  const { named, request } = tracedForThisTest()
  const commands = [['NOSUCHCOMMAND']] as const
  const call = () => store.run({ commands, readOnly: true, read: () => null })
  await expect(request(call)).rejects.toMatchObject({ code: 'ONETRIP_REFUSED' })
  const [operation] = named('redis operation')
  expect(operation).toMatchObject({
    attributes: { 'error.type': 'ONETRIP_REFUSED' },
    status: { code: SpanStatusCode.ERROR },
  })
})
