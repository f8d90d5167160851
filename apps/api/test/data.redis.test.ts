import { Writable } from 'node:stream'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { appForThisTest, bearer, login } from './support.ts'

const server = redisOfThisFile()

const patchWith =
  (app: FastifyInstance, token: string) =>
  (payload: object | string, headers: Record<string, string> = {}) =>
    app.inject({
      method: 'PATCH',
      url: '/me/data',
      headers: { 'content-type': 'application/json', ...bearer(token), ...headers },
      payload,
    })

test('a patch changes single fields, null removes a field, and the data ends with the session', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  const patch = patchWith(app, token)
  const get = () => app.inject({ url: '/me/data', headers: bearer(token) })
  const empty = await get()
  expect([empty.json(), empty.headers.etag]).toEqual([{ fields: {}, version: 0 }, '"0"'])
  const cart = [{ item: 'book', count: 2, gift: null }]
  const first = await patch({ cart, theme: 'dark' })
  expect([first.json(), first.headers.etag]).toEqual([{ version: 1 }, '"1"'])
  expect((await patch({ theme: null, locale: 'de' })).json()).toEqual({ version: 2 })
  const full = await get()
  expect(full.json()).toEqual({ fields: { cart, locale: 'de' }, version: 2 })
  expect([full.headers.etag, full.headers['cache-control']]).toEqual(['"2"', 'no-store'])
  await app.inject({ method: 'POST', url: '/logout', headers: bearer(token) })
  for (const answer of [await get(), await patch({ cart })]) {
    expect(answer.json()).toMatchObject({ statusCode: 401, code: 'ONETRIP_UNKNOWN_SESSION' })
  }
  expect(await server.redis.keys('data:*')).toEqual([])
})

test('with If-Match, a change of outdated data is rejected', async () => {
  const app = await appForThisTest(server.socket)
  const patch = patchWith(app, await login(app))
  const { etag } = (await patch({ count: 1 })).headers
  const both = await Promise.all([2, 3].map((count) => patch({ count }, { 'if-match': `${etag}` })))
  expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([200, 412])
  const refused = both.find(({ statusCode }) => statusCode === 412)
  expect(refused?.json()).toMatchObject({ code: 'ONETRIP_CONFLICT', error: 'Precondition Failed' })
  expect((await patch({ count: 4 }, { 'if-match': '*' })).json()).toEqual({ version: 3 })
  for (const header of ['2', 'W/"2"', '"2", "3"', '"-1"', '"x"', '']) {
    const answer = await patch({ count: 5 }, { 'if-match': header })
    expect(answer.json(), header).toMatchObject({ statusCode: 400, code: 'API_BAD_REQUEST' })
  }
})

test('an invalid patch is rejected with an error that names the field', async () => {
  const app = await appForThisTest(server.socket)
  const patch = patchWith(app, await login(app))
  for (const [body, code, message] of [
    ['[1]', 'API_BAD_REQUEST', 'object'],
    ['"text"', 'API_BAD_REQUEST', 'object'],
    ['null', 'API_BAD_REQUEST', 'object'],
    ['{"__proto__": {"admin": true}}', 'API_BAD_REQUEST', ''],
    ['{"": 1}', 'ONETRIP_INVALID_INPUT', 'name of a data field'],
    ['{"a\\nb": 1}', 'ONETRIP_INVALID_INPUT', 'name of a data field'],
    [
      JSON.stringify(Object.fromEntries(Array.from({ length: 65 }, (_, index) => [index, 1]))),
      'ONETRIP_INVALID_INPUT',
      'at most 64',
    ],
  ] as const) {
    const answer = (await patch(body)).json()
    expect(answer, body).toMatchObject({ statusCode: 400, code })
    expect(answer.message, body).toContain(message)
  }
  expect(await server.redis.keys('data:*')).toEqual([])
})

test('data in Redis that is not JSON causes an error with its own code, and is logged', async () => {
  let lines = ''
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines += chunk
      done()
    },
  })
  const app = await appForThisTest(server.socket, { logger: { stream } })
  const token = await login(app)
  await server.redis.hset(`data:${token.split('.')[0]}`, 'cart', 'a secret')
  const answer = await app.inject({ url: '/me/data', headers: bearer(token) })
  expect(answer.json()).toEqual({
    statusCode: 500,
    code: 'ONETRIP_UNREADABLE_DATA',
    error: 'Internal Server Error',
    message: 'a field of the session data is not JSON',
    mayHaveWritten: false,
    retrySafe: false,
  })
  expect(lines).toContain('data field \\"cart\\"')
  expect(lines).not.toContain('a secret')
})

test('accepts the largest patch that the store accepts', async () => {
  const app = await appForThisTest(server.socket)
  const patch = patchWith(app, await login(app))
  // 64 fields of 1,024 bytes each (name and JSON): 65,536 bytes, the maximum of the store.
  const names = Array.from({ length: 64 }, (_, index) => `${index}`.padEnd(128, '"'))
  const largest = Object.fromEntries(names.map((name) => [name, 'x'.repeat(1024 - 128 - 2)]))
  expect((await patch(largest)).json()).toEqual({ version: 1 })
  expect((await patch({ ...largest, [names[0] ?? '']: 'x'.repeat(1024) })).json()).toMatchObject({
    code: 'ONETRIP_INVALID_INPUT',
    message: expect.stringContaining('at most 65536'),
  })
  expect((await patch({ cart: 'x'.repeat(16_384) })).json()).toMatchObject({
    code: 'ONETRIP_INVALID_INPUT',
    message: expect.stringContaining('data field "cart" has 16386 bytes'),
  })
  const tooLarge = { cart: 'x'.repeat(131_072) }
  expect((await patch(tooLarge)).json()).toMatchObject({ code: 'API_BODY_TOO_LARGE' })
  // Without a valid token, the body is not read.
  const forged = `${(await login(app)).slice(0, -5)}AAAAA`
  const answer = await patchWith(app, forged)(tooLarge)
  expect(answer.json()).toMatchObject({ code: 'ONETRIP_INVALID_TOKEN' })
})

test('a cross-site request cannot change the data with the cookie', async () => {
  const app = await appForThisTest(server.socket)
  const answer = await app.inject({
    method: 'PATCH',
    url: '/me/data',
    cookies: { '__Host-onetrip': await login(app) },
    headers: { 'sec-fetch-site': 'cross-site' },
    payload: { cart: [] },
  })
  expect(answer.json()).toMatchObject({ statusCode: 403, code: 'ONETRIP_CROSS_SITE' })
})

test('responses for a guest session have user null', async () => {
  const app = await appForThisTest(server.socket)
  const { token } = await app.store.loginGuest()
  const get = async (url: string) => (await app.inject({ url, headers: bearer(token) })).json()
  expect(await get('/me')).toMatchObject({ user: null })
  expect(await get('/me/sessions')).toEqual({ sessions: [] })
  expect((await get('/recent')).sessions[0]).toMatchObject({ user: null })
  const view = await app.inject({
    method: 'POST',
    url: '/views',
    headers: bearer(token),
    payload: { item: 'book' },
  })
  expect(view.json()).toMatchObject({ user: null, item: 'book' })
})
