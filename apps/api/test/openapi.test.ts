import { Validator } from '@seriousme/openapi-schema-validator'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { errorTable } from '../src/errors.ts'
import { type ApiDocument, operationsOf } from './openapi-document.ts'
import { appOn } from './support.ts'

const NO_REDIS = '/nowhere/redis.sock'

let app: FastifyInstance
let document: ApiDocument
/** Registered routes: method, path, and whether the documentation hides it. */
const routes: [method: string, path: string, hidden: boolean][] = []

beforeAll(async () => {
  app = await appOn(NO_REDIS, {
    async traceRequests(own) {
      own.addHook('onRoute', ({ method, url, schema }) => {
        for (const one of [method].flat()) routes.push([one, url, schema?.hide === true])
      })
    },
  })
  document = (await app.inject('/openapi.json')).json()
})
afterAll(() => app.close())

test('the document is OpenAPI 3.1', async () => {
  const { errors, valid } = await new Validator().validate(structuredClone(document))
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  expect(document.openapi).toBe('3.1.0')
})

test('the document contains exactly the routes', () => {
  const visible = routes
    .filter(([method, , hidden]) => method !== 'HEAD' && !hidden) // HEAD is GET without its body
    .map(([method, path]) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
  expect(visible).toContain('POST /views')
  const operations = operationsOf(document).map(({ method, path }) => `${method} ${path}`)
  expect(operations.toSorted()).toEqual(visible.toSorted())
  const hidden = routes.filter(([, path, hidden]) => hidden && !/^\/docs\b/.test(path))
  expect(new Set(hidden.map(([, path]) => path))).toEqual(new Set(['/openapi.json']))
})

test.each(['requestBody', 'responses'] as const)('each %s has valid examples', (part) => {
  const bodies = operationsOf(document).flatMap((operation) => operation[part])
  for (const { name, content } of bodies) {
    for (const { examples, validate } of content) {
      expect(examples.length, name).toBeGreaterThan(0)
      for (const example of examples) expect(validate(example), name).toBe('')
    }
  }
  expect(bodies.length).toBeGreaterThan(1)
})

test('every code of the error table is documented, for every operation', () => {
  const documented = JSON.stringify(document.components?.responses)
  for (const code of Object.keys(errorTable)) expect(documented).toContain(`"${code}"`)
  const error = { $ref: '#/components/responses/Error' }
  for (const { operation } of operationsOf(document)) {
    expect(operation.responses).toMatchObject({ '4XX': error, default: error })
  }
})

test('every operation has an id, a summary and a tag, and says whether it needs a token', () => {
  const operations = operationsOf(document).map(({ operation }) => operation)
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
  expect(operations.filter(({ summary, tags }) => !summary || tags?.length !== 1)).toEqual([])
  const free = operations.filter(({ security }) => security?.length === 0)
  expect(operations.filter(({ security }) => !security)).toEqual([])
  expect(free.map(({ operationId }) => operationId)).toContain('login')
  expect(document.info.license).toEqual({ name: 'MIT', identifier: 'MIT' })
})

test.for([
  '/healthz',
  '/openapi.json',
  '/docs/',
  '/docs/static/swagger-ui.css',
  '/me',
  '/nowhere',
  '/%zz',
])('the response to %s has a request id and nosniff', async (url) => {
  const { headers } = await app.inject({ url, headers: { 'x-request-id': 'from-the-proxy' } })
  expect(headers).toMatchObject({
    'x-request-id': 'from-the-proxy',
    'x-content-type-options': 'nosniff',
  })
})

test('/docs has no external resources and no inline script', async () => {
  const page = await app.inject('/docs/')
  expect(page.statusCode).toBe(200)
  expect(page.body).not.toMatch(/https?:|<script>|style=/)
  expect(page.headers['content-security-policy']).toContain("script-src 'self'")
  const sources = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source)
  expect(sources).toContain('./static/swagger-ui-bundle.js')
  for (const source of sources) {
    const { pathname } = new URL(source ?? '', 'http://localhost/docs/')
    expect((await app.inject(pathname)).statusCode, pathname).toBe(200)
  }
})

test('docs: false removes /openapi.json and /docs', async () => {
  const bare = await appOn(NO_REDIS, { docs: false })
  onTestFinished(() => bare.close())
  for (const url of ['/openapi.json', '/docs', '/docs/json']) {
    expect((await bare.inject(url)).statusCode).toBe(404)
  }
})
