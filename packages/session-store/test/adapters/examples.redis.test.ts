import { createHmac } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { startProgram } from '@onetrip/stack/program.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { RedisStore } from 'connect-redis'
import session from 'express-session'
import { createClient } from 'redis'
import { expect, onTestFinished, test } from 'vitest'

const SECRET = 'a-secret-for-tests-a-secret-for-tests'

/** Signs a cookie as express-session does. */
const sign = (id: string) =>
  `${id}.${createHmac('sha256', SECRET).update(id).digest('base64').replace(/=+$/, '')}`

/** Starts an example as a process. `ask` sends requests and stores cookies as a browser does. */
async function example(file: string, socket: string, ...args: string[]) {
  const program = await startProgram({
    name: file,
    command: process.execPath,
    args: [fileURLToPath(new URL(`../../examples/${file}`, import.meta.url)), ...args],
    env: {
      ...process.env,
      PORT: '0',
      REDIS_URL: `unix://${socket}`,
      SESSION_SECRET: SECRET,
    },
    ready: /127\.0\.0\.1|port: \d+/,
    readyTimeoutMs: 100_000,
  })
  onTestFinished(() => program.stop().then(() => undefined))
  const lines = program.lastLines.join('\n')
  const port = /(?:127\.0\.0\.1:|port: )(\d+)/.exec(lines)?.[1]
  const cookies = new Map<string, string>()
  const ask = async (method: string, path: string) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { cookie } })
    for (const header of response.headers.getSetCookie()) {
      const [name = '', value = ''] = header.split(';')[0]?.split('=') ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    return { status: response.status, body: (await response.json()) as unknown }
  }
  return { program, lines, cookies, ask }
}

test.each(['express-session.ts', 'fastify-session.ts'])('examples/%s', async (file) => {
  const redis = await redisForThisTest()
  const { program, ask } = await example(file, redis.socket)
  expect(await ask('GET', '/theme')).toEqual({ status: 200, body: { theme: null } })
  expect(await ask('POST', '/theme/dark')).toEqual({ status: 200, body: { theme: 'dark' } })
  expect(await ask('GET', '/theme')).toEqual({ status: 200, body: { theme: 'dark' } })
  if (file === 'express-session.ts') {
    await ask('POST', '/logout')
    expect(await ask('GET', '/theme')).toEqual({ status: 200, body: { theme: null } })
  }
  expect(await program.stop()).toEqual({ code: 0, signal: null })
})

test('examples/migrate.ts moves a session of connect-redis to a token', async () => {
  const redis = await redisForThisTest()
  const client = createClient({ socket: { path: redis.socket, tls: false } })
  await client.connect()
  onTestFinished(() => client.destroy())
  const old = new RedisStore({ client })
  const data = { cookie: new session.Cookie(), user: 'ada', cart: ['book'] }
  for (const id of ['one', 'two', 'three']) await old.set(id, data)

  const me = { user: 'ada', data: { fields: { cart: ['book'] } } }
  const checkMove = async ({ cookies, ask }: Awaited<ReturnType<typeof example>>, id: string) => {
    cookies.clear()
    cookies.set('connect.sid', encodeURIComponent(`s:${sign(id)}`))
    expect(await ask('GET', '/me')).toMatchObject({ status: 200, body: me })
    expect([...cookies.keys()]).toEqual([expect.stringContaining('onetrip')])
    expect(await ask('GET', '/me')).toMatchObject({ status: 200, body: me })
    expect(await old.get(id)).toBe(null)
  }
  const deployed = await example('migrate.ts', redis.socket)
  await checkMove(deployed, 'one')
  await old.set('late', data) // by a process of the previous version
  await checkMove(deployed, 'late')

  const importing = await example('migrate.ts', redis.socket, 'import')
  expect(importing.lines).toContain('{ imported: 2, existing: 0, skipped: {} }')
  await checkMove(importing, 'two')
  for (const { program } of [deployed, importing]) {
    expect(await program.stop()).toEqual({ code: 0, signal: null })
  }
})
