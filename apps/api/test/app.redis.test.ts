import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { appForThisTest, bearer, login, view } from './support.ts'

const server = redisOfThisFile()

test.each(['naive', 'pipeline', 'batch'] as const)('%s: from login to logout', async (strategy) => {
  const app = await appForThisTest(server.socket, { strategy })
  const payload = { user: 'ada', remember: true }
  const answer = await app.inject({ method: 'POST', url: '/login', payload })
  expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'no-store'])
  const { token, expiresAt } = answer.json<{ token: string; expiresAt: number }>()
  expect((expiresAt - Date.now()) / 86_400_000).toBeCloseTo(90, 1)
  const cookie = { name: '__Host-onetrip', value: token, path: '/', httpOnly: true, secure: true }
  expect(answer.cookies).toMatchObject([{ ...cookie, sameSite: 'Lax' }])

  expect((await view(app, token)).json()).toEqual({ user: 'ada', item: 'book', views: 1 })
  expect((await view(app, token, '🦊'.repeat(128))).statusCode).toBe(200)
  const byCookie = await app.inject({
    method: 'POST',
    url: '/views',
    cookies: { '__Host-onetrip': token },
    payload: { item: 'book' },
  })
  expect(byCookie.json()).toMatchObject({ views: 2 })
  const get = async (url: string) => (await app.inject({ url, headers: bearer(token) })).json()
  expect(await get('/me')).toMatchObject({ user: 'ada' })
  const { items } = await get('/me/views')
  expect(items).toHaveLength(2) // in any order if they were viewed in the same millisecond
  expect(items).toContainEqual(expect.objectContaining({ item: 'book' }))
  expect(await get('/items/popular?limit=1')).toEqual({ items: [{ item: 'book', views: 2 }] })
  const recent = await get('/recent')
  expect(recent).toMatchObject({ sessions: [{ user: 'ada' }] })
  expect(JSON.stringify(recent)).not.toContain(token.slice(0, 16))
  expect(await get('/readyz')).toEqual({ status: 'ready', strategy })

  const out = await app.inject({ method: 'POST', url: '/logout', headers: bearer(token) })
  expect(out.statusCode).toBe(204)
  expect(await get('/me')).toMatchObject({ statusCode: 401, code: 'ONETRIP_UNKNOWN_SESSION' })
})

test('a rejected request names its mistake, and sends nothing to Redis', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await server.redis.info('stats'))?.[1])
  const before = await commands()
  for (const [answer, status, words] of [
    [await view(app, token, ''), 400, 'body/item'],
    [await view(app, token, 'a\u0000'), 400, 'body/item'],
    [await view(app, token, '🦊'.repeat(129)), 400, 'body/item'], // characters, not UTF-16 units
    [await view(app, token, 'x'.repeat(5_000)), 413, 'too large'],
    [await view(app, `${token.slice(0, -5)}AAAAA`), 401, 'signature'],
    [await app.inject('/items/popular?top=3'), 400, 'top'],
  ] as const) {
    expect(answer.json()).toMatchObject({ statusCode: status, error: expect.any(String) })
    expect(answer.json().message).toContain(words)
  }
  expect(await commands()).toBe(before + 1) // the previous INFO
})

test.each([
  [401, 401, 'ONETRIP_LOGIN_REQUIRED'],
  [403, 403, 'API_FORBIDDEN'],
  [408, 408, 'API_REQUEST_TIMEOUT'],
  [409, 400, 'API_BAD_REQUEST'],
  [302, 500, 'API_INTERNAL'],
  [503, 500, 'API_INTERNAL'],
])('a plugin throws an error with status %i: the answer is %i %s', async (thrown, status, code) => {
  const app = await appForThisTest(server.socket)
  app.addHook('preHandler', async () => {
    throw Object.assign(new Error('of a plugin'), { statusCode: thrown, code: 'PLUGIN_ERROR' })
  })
  const answer = await app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' } })
  expect(answer.statusCode).toBe(status)
  expect(answer.json()).toMatchObject({ statusCode: status, code })
})
