import { fileURLToPath } from 'node:url'
import { startProgram } from '@onetrip/stack/program.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'

/** Starts an example as a process, and sends requests as curl does. */
async function example(file: string, name: string) {
  const redis = await redisForThisTest()
  const program = await startProgram({
    name,
    command: process.execPath,
    args: [fileURLToPath(new URL(`../../examples/${file}`, import.meta.url))],
    env: {
      ...process.env,
      NODE_ENV: 'production',
      PORT: '0',
      REDIS_URL: `unix://${redis.socket}`,
      SESSION_SECRET: 'a-secret-for-tests-a-secret-for-tests',
    },
    ready: /127\.0\.0\.1|port: \d+/,
    readyTimeoutMs: 100_000,
  })
  onTestFinished(() => program.stop().then(() => undefined))
  const port = /(?:127\.0\.0\.1:|port: )(\d+)/.exec(program.lastLines.join('\n'))?.[1]
  const send = async (method: string, path: string, headers = {}, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const cookie = response.headers.getSetCookie()
    return {
      status: response.status,
      headers: response.headers,
      cookie,
      body: await response.json(),
    }
  }
  return { program, send }
}

test.each([
  ['fastify.ts', 'Fastify'],
  ['express.ts', 'Express'],
])('examples/%s: password check, cookie, views, logout', async (file, name) => {
  const { program, send } = await example(file, name)
  const login = (user: string, password: string, headers = {}) =>
    send('POST', '/login', headers, { user, password })

  expect(await login('ada', 'wrong')).toMatchObject({ status: 401, cookie: [] })
  expect(await login('eve', 'lovelace')).toMatchObject({ status: 401, cookie: [] })
  expect(await send('POST', '/login', {}, {})).toMatchObject({ cookie: [] })
  expect(await send('POST', '/views/book')).toMatchObject({
    status: 401,
    body: { code: 'ONETRIP_LOGIN_REQUIRED' },
  })
  const crossSite = { origin: 'https://evil.example' }
  expect(await login('ada', 'lovelace', crossSite)).toMatchObject({ status: 403, cookie: [] })

  const loggedIn = await login('ada', 'lovelace')
  expect(loggedIn).toMatchObject({ status: 200, body: { user: 'ada' } })
  const [setCookie = ''] = loggedIn.cookie
  expect(setCookie).toMatch(
    /^__Host-onetrip=[^;]+; Max-Age=\d+; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/,
  )
  const cookie = { cookie: setCookie.split(';')[0] }

  const view = (headers = {}) => send('POST', '/views/book', { ...cookie, ...headers })
  expect((await view()).body).toEqual({ user: 'ada', views: 1 })
  const token = cookie.cookie?.split('=')[1]
  expect((await send('POST', '/views/book', { authorization: `Bearer ${token}` })).body).toEqual({
    user: 'ada',
    views: 2,
  })
  expect(await view(crossSite)).toMatchObject({
    status: 403,
    body: { statusCode: 403, code: 'ONETRIP_CROSS_SITE', error: 'Forbidden' },
  })
  expect((await send('GET', '/me', cookie)).body).toMatchObject({ user: 'ada' })

  expect(await send('POST', '/logout', cookie)).toMatchObject({
    status: 200,
    body: { ended: true },
    cookie: [expect.stringMatching(/^__Host-onetrip=; Max-Age=0/)],
  })
  const ended = await view()
  expect(ended).toMatchObject({
    status: 401,
    body: { code: 'ONETRIP_UNKNOWN_SESSION' },
    cookie: [],
  })
  expect(ended.headers.get('www-authenticate')).toBe('Bearer')

  expect(await program.stop()).toEqual({ code: 0, signal: null })
})
