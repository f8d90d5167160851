import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { appForThisTest, bearer, collectedLog, login } from './support.ts'

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
})

test('with If-Match, a change of outdated data is rejected', async () => {
  const app = await appForThisTest(server.socket)
  const patch = patchWith(app, await login(app))
  const { etag } = (await patch({ count: 1 })).headers
  const both = await Promise.all([2, 3].map((count) => patch({ count }, { 'if-match': `${etag}` })))
  expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([200, 412])
  const refused = both.find(({ statusCode }) => statusCode === 412)
  expect(refused?.json()).toMatchObject({ code: 'ONETRIP_CONFLICT' })
  expect((await patch({ count: 4 }, { 'if-match': '*' })).json()).toEqual({ version: 3 })
  for (const header of ['2', 'W/"2"', '"2", "3"', '"-1"', '']) {
    const answer = await patch({ count: 5 }, { 'if-match': header })
    expect(answer.json(), header).toMatchObject({ statusCode: 400, code: 'API_BAD_REQUEST' })
  }
})

test('data in Redis that is not JSON causes an error with its own code, and is not logged', async () => {
  const { stream, text } = collectedLog()
  const app = await appForThisTest(server.socket, { logger: { stream } })
  const token = await login(app)
  await server.redis.hset(`data:${token.split('.')[0]}`, 'cart', 'a secret')
  const answer = await app.inject({ url: '/me/data', headers: bearer(token) })
  expect(answer.json()).toMatchObject({
    statusCode: 500,
    code: 'ONETRIP_UNREADABLE_DATA',
    mayHaveWritten: false,
    retrySafe: false,
  })
  expect(text()).toContain('cart')
  expect(text() + answer.body).not.toContain('a secret')
})

test('accepts the largest patch that the store accepts, and names the mistake of another', async () => {
  const app = await appForThisTest(server.socket)
  const patch = patchWith(app, await login(app))
  // 64 fields of 1,024 bytes each (name and JSON): 65,536 bytes, the maximum of the store.
  const names = Array.from({ length: 64 }, (_, index) => `${index}`.padEnd(128, '"'))
  const largest = Object.fromEntries(names.map((name) => [name, 'x'.repeat(1024 - 128 - 2)]))
  expect((await patch(largest)).json()).toEqual({ version: 1 })
  const tooLarge = { cart: 'x'.repeat(131_072) }
  for (const [body, code, words] of [
    ['[1]', 'API_BAD_REQUEST', 'object'],
    ['{"__proto__": {"admin": true}}', 'API_BAD_REQUEST', ''],
    ['{"a\\nb": 1}', 'ONETRIP_INVALID_INPUT', 'name of a data field'],
    [tooLarge, 'API_BODY_TOO_LARGE', ''],
  ] as const) {
    const answer = (await patch(body)).json()
    expect(answer).toMatchObject({ code, message: expect.stringContaining(words) })
  }
  // Without a valid token, the body is not read.
  const forged = `${(await login(app)).slice(0, -5)}AAAAA`
  const answer = await patchWith(app, forged)(tooLarge)
  expect(answer.json()).toMatchObject({ code: 'ONETRIP_INVALID_TOKEN' })
})
