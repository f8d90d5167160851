import { strategyNames } from '@onetrip/session-store'
import { redisOfThisFile, testRedis } from '@onetrip/stack/testing/redis.ts'
import type { InjectOptions } from 'fastify'
import { expect, test } from 'vitest'
import { appForThisTest, bearer, login } from './support.ts'

const server = redisOfThisFile()

test.each(strategyNames)('%s: from login to logout', async (strategy) => {
  const app = await appForThisTest(server.socket, { strategy })
  const answer = await app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' } })
  expect(answer.statusCode).toBe(200)
  const { token } = answer.json<{ token: string }>()
  expect(answer.cookies).toMatchObject([
    {
      name: '__Host-onetrip',
      value: token,
      path: '/',
      httpOnly: true,
      sameSite: 'Lax',
      secure: true,
    },
  ])

  const view = { method: 'POST', url: '/views', payload: { item: 'book' } } as const
  expect((await app.inject({ ...view, headers: bearer(token) })).json()).toEqual({
    user: 'ada',
    item: 'book',
    views: 1,
  })
  expect(
    (await app.inject({ ...view, cookies: { '__Host-onetrip': token } })).json(),
  ).toMatchObject({
    views: 2,
  })
  const get = async (url: string) => (await app.inject({ url, headers: bearer(token) })).json()
  expect(await get('/me')).toMatchObject({ user: 'ada' })
  expect(await get('/me/views')).toMatchObject({ items: [{ item: 'book' }] })
  expect(await get('/items/popular?limit=1')).toEqual({ items: [{ item: 'book', views: 2 }] })
  const recent = await app.inject({ url: '/recent', headers: bearer(token) })
  expect(recent.json()).toMatchObject({ sessions: [{ user: 'ada' }] })
  expect(recent.body).not.toContain(token.slice(0, 16))
  expect(await get('/readyz')).toEqual({ status: 'ready', strategy })

  const out = await app.inject({ method: 'POST', url: '/logout', headers: bearer(token) })
  expect(out.statusCode).toBe(204)
  expect(await get('/me')).toMatchObject({ statusCode: 401, code: 'ONETRIP_UNKNOWN_SESSION' })
})

test('concurrent views share one round trip and one command per key, and open no connection', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  const metric = async (name: string) => {
    const { body } = await app.inject('/metrics')
    return Number(new RegExp(`^${name} (.*)$`, 'm').exec(body)?.[1])
  }
  const names = ['round_trips_total', 'commands_total', 'connections_opened_total']
  const read = () => Promise.all(names.map((name) => metric(`onetrip_store_${name}`)))
  const before = await read()
  const views = Array.from({ length: 10 }, (_, index) =>
    app.inject({
      method: 'POST',
      url: '/views',
      headers: bearer(token),
      payload: { item: `item ${index}` },
    }),
  )
  await Promise.all(views)
  const after = await read()
  // ZADD recent:, ZADD and ZREMRANGEBYRANK of the session's views, ZINCRBY of ten items, HMGET login:
  expect(after.map((value, index) => value - (before[index] ?? 0))).toEqual([1, 14, 0])
  expect(await metric('process_cpu_seconds_total')).toBeGreaterThan(0)
})

test('bad requests get a status and a message that names the error, without a request to Redis', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  const headers = { ...bearer(token), 'content-type': 'application/json' }
  const forged = bearer(`${token.slice(0, -5)}AAAAA`)
  const view = (payload: string, more = {}) => ({
    method: 'POST' as const,
    url: '/views',
    headers: { ...headers, ...more },
    payload,
  })
  const bad: [InjectOptions, number, string][] = [
    [view('{}'), 400, 'item'],
    [view(''), 400, 'Body'],
    [view('{'), 400, 'JSON'],
    [view('[]'), 400, 'body must be object'],
    [view('{"item":""}'), 400, 'body/item'],
    [view('{"item":5}'), 400, 'body/item must be string'],
    [view('{"item":null}'), 400, 'body/item must be string'],
    [view('{"item":["a"]}'), 400, 'body/item must be string'],
    [view('{"item":"a\\u0000"}'), 400, 'body/item must have no control characters'],
    [view('{"item":"\\u202ea"}'), 400, 'body/item'],
    [view('{"item":"\\ud800"}'), 400, 'body/item'],
    [view('{"item":"a","price":1}'), 400, 'unknown property \\"price\\"'],
    [view('{"item":"a","__proto__":{}}'), 400, 'JSON'],
    [view(JSON.stringify({ item: 'x'.repeat(129) })), 400, 'body/item must NOT have more than 128'],
    [view(JSON.stringify({ item: 'x'.repeat(5000) })), 413, 'too large'],
    [view('item=a', { 'content-type': 'application/x-www-form-urlencoded' }), 415, 'json'],
    [view('{"item":"a"}', { 'content-type': 'text/plain' }), 415, 'json'],
    [view('{"item":"a"}', { authorization: '' }), 401, 'login required'],
    [view('{"item":"a"}', { authorization: 'Bearer x' }), 401, 'malformed'],
    [view('{"item":"a"}', forged), 401, 'invalid signature'],
    [{ url: '/me', headers: forged }, 401, 'invalid signature'],
    [{ url: '/recent' }, 401, 'login required'],
    [{ url: '/items/popular?limit=0' }, 400, 'querystring/limit'],
    [{ url: '/items/popular?limit=ten' }, 400, 'querystring/limit'],
    [{ url: '/items/popular?top=3' }, 400, 'unknown property \\"top\\"'],
    [{ method: 'POST', url: '/login', payload: { user: '' } }, 400, 'body/user'],
    [{ method: 'POST', url: '/login', payload: { user: 'a', admin: true } }, 400, 'admin'],
    [{ url: '/nowhere' }, 404, 'not found'],
    [{ url: '/%zz' }, 400, 'path'],
    [{ method: 'PUT', url: '/views' }, 405, 'method not allowed'],
    [
      { method: 'DELETE', url: '/me/sessions/short', headers: bearer(token) },
      400,
      'params/id must match pattern',
    ],
    [{ method: 'DELETE', url: `/me/sessions/${'x'.repeat(101)}` }, 414, 'path'],
  ]
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await server.redis.info('stats'))?.[1])
  const before = await commands()
  for (const [request, status, words] of bad) {
    const answer = await app.inject(request)
    expect(answer.body, JSON.stringify(request)).toContain(words)
    expect(answer.json(), JSON.stringify(request)).toMatchObject({
      statusCode: status,
      error: expect.any(String),
      message: expect.any(String),
    })
    expect(answer.statusCode).toBe(status)
  }
  expect(await commands()).toBe(before + 1) // the previous INFO
})

test.each([
  [400, 400, 'API_BAD_REQUEST'],
  [401, 401, 'ONETRIP_LOGIN_REQUIRED'],
  [403, 403, 'API_FORBIDDEN'],
  [404, 404, 'API_NOT_FOUND'],
  [405, 405, 'API_METHOD_NOT_ALLOWED'],
  [408, 408, 'API_REQUEST_TIMEOUT'],
  [409, 400, 'API_BAD_REQUEST'],
  [413, 413, 'API_BODY_TOO_LARGE'],
  [414, 414, 'API_URL_TOO_LONG'],
  [415, 415, 'API_UNSUPPORTED_MEDIA_TYPE'],
  [422, 400, 'API_BAD_REQUEST'],
  [429, 429, 'API_TOO_MANY_REQUESTS'],
  [431, 431, 'API_HEADERS_TOO_LARGE'],
  [200, 500, 'API_INTERNAL'],
  [302, 500, 'API_INTERNAL'],
  [500, 500, 'API_INTERNAL'],
  [503, 500, 'API_INTERNAL'],
])(
  'an error of a plugin with status %i is answered with %i and %s',
  async (status, answered, code) => {
    const app = await appForThisTest(server.socket)
    app.addHook('preHandler', async () => {
      throw Object.assign(new Error('of a plugin'), { statusCode: status, code: 'PLUGIN_ERROR' })
    })
    const answer = await app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' } })
    expect(answer.statusCode).toBe(answered)
    expect(answer.json()).toMatchObject({ statusCode: answered, code })
  },
)

test('the length limit counts characters, not UTF-16 units', async () => {
  const app = await appForThisTest(server.socket)
  const headers = bearer(await login(app))
  const send = (item: string) =>
    app.inject({ method: 'POST', url: '/views', headers, payload: { item } })
  expect((await send('🦊'.repeat(128))).statusCode).toBe(200)
  expect((await send('🦊'.repeat(129))).statusCode).toBe(400)
})

test('a stopped Redis: 503 within the deadline with the flags of the error, then recovery', async () => {
  const own = await testRedis()
  try {
    const app = await appForThisTest(own.socket, { deadlineMs: 2_000 })
    const headers = bearer(await login(app))
    const view = () =>
      app.inject({ method: 'POST', url: '/views', headers, payload: { item: 'book' } })
    own.program.signal('SIGSTOP')
    const [late, notReady, alive] = await Promise.all([
      view(),
      app.inject('/readyz'),
      app.inject('/healthz'),
    ])
    expect(late.statusCode).toBe(503)
    expect(late.headers['retry-after']).toBe('1')
    expect(late.json()).toMatchObject({
      code: 'ONETRIP_OUTCOME_UNKNOWN',
      mayHaveWritten: true,
      retrySafe: false,
    })
    expect(notReady.statusCode).toBe(503)
    expect(notReady.json()).toMatchObject({ mayHaveWritten: false, retrySafe: true })
    expect(alive.statusCode).toBe(200)
    own.program.signal('SIGKILL')
    await own.restart()
    await expect.poll(async () => (await view()).statusCode).not.toBe(503)
  } finally {
    await own.stop()
  }
})
