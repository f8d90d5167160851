import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import * as fc from 'fast-check'
import type { FastifyInstance, InjectOptions } from 'fastify'
import type { OpenAPIV3_1 } from 'openapi-types'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ApiDocument, type Operation, operationsOf } from '../../api/test/openapi-document.ts'
import { arbitraryOf, mutationOf } from './arbitrary.ts'
import { bearer, demoOn, login } from './support.ts'

// The demo has all routes of the API and its own.
// For other requests: FUZZ_SEED=7 FUZZ_RUNS=100000 npx vitest run apps/demo/test/fuzz
const seed = Number(process.env.FUZZ_SEED ?? 20261121)
const numRuns = Number(process.env.FUZZ_RUNS ?? 1500)

const server = redisOfThisFile()
let reports: string
let app: FastifyInstance
let operations: Operation[]
/** A token whose session probably exists. */
let token: string | undefined
let ended: string

beforeAll(async () => {
  reports = await mkdtemp(join(tmpdir(), 'onetrip-fuzz-'))
  const reportFile = join(reports, 'latest.html')
  await writeFile(reportFile, 'A page.')
  app = await demoOn(server.socket, { reportFile })
  await app.store.ready()
  const document: ApiDocument = (await app.inject('/openapi.json')).json()
  // The stream of a session ends only with the session.
  operations = operationsOf(document).filter(
    ({ operation }) => operation.operationId !== 'watchSession',
  )
})
beforeEach(async () => {
  ended = await login(app, 'gone')
  await app.inject({ method: 'POST', url: '/logout', headers: bearer(ended) })
})
afterAll(async () => {
  await app.close()
  await rm(reports, { recursive: true })
})

/** Placeholder for an existing object that no schema contains: the session id of `token`, or a page. */
const OWN_ID = Symbol('own id')

const credentialHeaders = {
  bearer: () => bearer(String(token)),
  cookie: () => ({ cookie: `__Host-onetrip=${token}` }),
  none: () => ({}),
  ended: () => bearer(ended),
}

const printable = fc.string({
  unit: fc.integer({ min: 33, max: 126 }).map((n) => String.fromCharCode(n)),
})
const sometimes = <Value>(usual: fc.Arbitrary<Value>, other: fc.Arbitrary<Value>) =>
  fc.oneof({ arbitrary: usual, weight: 4 }, { arbitrary: other, weight: 1 })

/** Requests for this operation, most of them almost valid. */
function requestsOf(operation: Operation) {
  const [body] = operation.requestBody
  const schema = body?.content[0]?.schema
  const parameters = (place: string, other: fc.Arbitrary<unknown>) =>
    Object.fromEntries(
      operation.parameters
        .filter((one) => one.in === place)
        .map(({ name, schema }) => {
          const right = arbitraryOf(schema as OpenAPIV3_1.SchemaObject)
          return [name, fc.oneof(right, other)]
        }),
    )
  return fc.record({
    operation: fc.constant(operation),
    path: fc.record(
      parameters('path', fc.oneof(fc.constant(OWN_ID), printable, fc.constant('x'.repeat(101)))),
    ),
    query: sometimes(
      fc.record(parameters('query', fc.oneof(fc.integer(), printable)), { requiredKeys: [] }),
      fc.dictionary(printable, printable, { maxKeys: 2 }),
    ),
    credential: sometimes(
      fc.constantFrom('bearer' as const, 'cookie' as const),
      fc.constantFrom('none' as const, 'ended' as const),
    ),
    payload: schema
      ? sometimes(
          sometimes<unknown>(arbitraryOf(schema), mutationOf(schema)).map((v) => JSON.stringify(v)),
          fc.oneof(printable, fc.constant(''), fc.string({ minLength: 4097, maxLength: 5000 })),
        )
      : sometimes(fc.constant(undefined), printable),
    contentType: sometimes(
      fc.constant('application/json'),
      fc.constantFrom('text/plain', 'application/xml', '', undefined),
    ),
    site: sometimes(fc.constant('same-origin'), fc.constantFrom('cross-site', 'same-site', 'none')),
  })
}

type FuzzedRequest = ReturnType<typeof requestsOf> extends fc.Arbitrary<infer T> ? T : never

async function send(fuzzed: FuzzedRequest) {
  const { operation, path, query, credential, payload, contentType, site } = fuzzed
  token ??= await login(app)
  const ownId = token.slice(0, 32)
  const url = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(path[name] === OWN_ID ? ownId : String(path[name])),
  )
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]) => [name, String(value)]),
  )
  const request: InjectOptions = {
    method: operation.method,
    url: search.size > 0 ? `${url}?${search}` : url,
    headers: {
      ...credentialHeaders[credential](),
      ...(payload !== undefined && contentType !== undefined && { 'content-type': contentType }),
      'sec-fetch-site': site,
    },
    ...(payload !== undefined && { payload }),
  }
  return { request, answer: await app.inject(request) }
}

/** The fuzz test runs without the demo service, because races would load the machine. */
const needsDemoService = new Set<string | undefined>([
  'startRace',
  'watchRace',
  'traceView',
  'readResult',
  'drawResult',
  'renderResult',
])

test(`${numRuns} requests generated from the document get documented responses, and no 5xx`, async () => {
  const statuses = new Map(
    operations.map(({ operation }) => [operation.operationId, new Set<number>()]),
  )
  await fc.assert(
    fc.asyncProperty(fc.oneof(...operations.map(requestsOf)), async (fuzzed) => {
      const { request, answer } = await send(fuzzed)
      const { operation, responses } = fuzzed.operation
      const said = `${JSON.stringify(request)} → ${answer.statusCode} ${answer.body.slice(0, 300)}`
      if (answer.statusCode < 300 && /log|end/.test(operation.operationId ?? '')) token = undefined
      expect(answer.statusCode, said).toBeLessThan(500)
      const error = answer.statusCode >= 400 ? 'default' : undefined
      const documented = responses.find(({ status }) => status === (error ?? answer.statusCode))
      if (!documented) throw new Error(`the status is not documented: ${said}`)
      statuses.get(operation.operationId)?.add(answer.statusCode)
      const [content] = documented.content
      if (!content) expect(answer.body, said).toBe('')
      else {
        expect(String(answer.headers['content-type']), said).toContain(content.type)
        const value = content.type === 'application/json' ? answer.json() : answer.body
        expect(content.validate(value), said).toBe('')
      }
    }),
    { seed, numRuns },
  )
  // Without successful requests the test would prove nothing.
  for (const [name, seen] of statuses) {
    if (needsDemoService.has(name)) continue
    expect(
      [...seen].some((status) => status < 300),
      `${name} never succeeded`,
    ).toBe(true)
  }
  const all = [...statuses.values()].reduce((a, b) => a.union(b))
  expect([...all].sort()).toEqual(
    expect.arrayContaining([200, 204, 400, 401, 403, 404, 413, 414, 415]),
  )
})
