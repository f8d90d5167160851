import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isAlive } from '@onetrip/stack/processes.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { ApiError, type ErrorKind } from '../src/errors.ts'
import { failedStart } from './api-process.ts'
import { clusterForThisTest, connection, metric, WORKERS } from './cluster.ts'
import { appForThisTest, bearer } from './support.ts'

const redis = redisOfThisFile()
const example = fileURLToPath(new URL('../examples/own-login.ts', import.meta.url))
const addUserProgram = fileURLToPath(new URL('../examples/add-user.ts', import.meta.url))
const PASSWORD = 'correct horse battery staple'

/** Runs `add-user.ts` with this password as its input. */
async function addUser(path: string, password: string) {
  const child = execFile(process.execPath, [addUserProgram, path, 'Ada@example.com', 'Ada'])
  child.stdin?.end(`${password}\n`)
  const [code] = await once(child, 'exit')
  return code
}

/** Creates a database with the user ada, and returns its path. */
async function usersDatabase(): Promise<string> {
  const path = join(await temporaryFolder(), 'users.db')
  expect(await addUser(path, 'the first password')).toBe(0)
  expect(statSync(path).mode & 0o077).toBe(0) // only the owner may read it
  expect(await addUser(path, 'short')).toBe(1)
  expect(await addUser(path, PASSWORD)).toBe(0) // changes the password
  return path
}

const post = async (url: string, body: object) => {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { answer, body: (await answer.json()) as Record<string, string> }
}

test("an application's entry file serves its login and routes, in production with two workers", async () => {
  const cluster = await clusterForThisTest(
    {
      REDIS_URL: `unix://${redis.socket}`,
      NODE_ENV: 'production',
      USERS_DATABASE: await usersDatabase(),
    },
    example,
  )
  const { primary, url, workers } = cluster
  expect(await metric(connection(url), 'onetrip_workers')).toBe(WORKERS)

  const email = 'Ada@Example.com'
  const { answer, body } = await post(`${url}/login`, { email, password: PASSWORD })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('set-cookie')).toMatch(/^__Host-onetrip=.*; Secure/)
  expect(body.user).toMatch(/^[0-9a-f-]{36}$/)
  for (const wrong of [
    { email, password: 'wrong' },
    { email: 'eve@example.com', password: PASSWORD },
  ]) {
    expect((await post(`${url}/login`, wrong)).body.code).toBe('API_WRONG_CREDENTIALS')
  }
  expect((await post(`${url}/login`, { user: 'ada' })).answer.status).toBe(400)

  const profile = await fetch(`${url}/me/profile`, { headers: bearer(body.token ?? '') })
  expect(await profile.json()).toEqual({ name: 'Ada', email: 'ada@example.com' })
  expect(profile.headers.get('cache-control')).toBe('no-store')
  expect((await fetch(`${url}/me/profile`)).status).toBe(401)
  expect((await fetch(`${url}/welcome`)).status).toBe(200)
  expect((await post(`${url}/welcome`, {})).answer.status).toBe(405)

  primary.signal('SIGTERM')
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(workers.filter(isAlive)).toEqual([])
  expect(primary.lastLines.join('\n')).not.toContain(PASSWORD)
}, 90_000)

test.each([
  [{ PORT: 'x' }, 'The API cannot start: PORT must be integer'],
  [{ WORKERS: '2', REDIS_URL: 'unix:///nowhere/redis.sock' }, 'no connection after 1 s'],
  [{ AUTH: 'password' }, 'AUTH is no longer a setting'],
])('an entry file that cannot start with %j writes the reason', async (settings, words) => {
  const { code, stderr } = await failedStart(
    { STARTUP_DEADLINE_MS: '1000', USERS_DATABASE: await usersDatabase(), ...settings },
    example,
  )
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(words) })
})

test('serve() takes settings from the caller', async () => {
  const entry = join(await temporaryFolder(), 'entry.ts')
  const index = new URL('../src/index.ts', import.meta.url)
  await writeFile(
    entry,
    `import { loadConfig, serve } from '${index}'
    const config = { ...loadConfig(), REDIS_URL: 'unix:///nowhere', STARTUP_DEADLINE_MS: 300 }
    await serve({ config })`,
  )
  const { code, stderr } = await failedStart({ REDIS_URL: `unix://${redis.socket}` }, entry)
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('after 0.3 s') })
})

test('an error of the function passed to serve() is reported', async () => {
  const entry = join(await temporaryFolder(), 'entry.ts')
  const index = new URL('../src/index.ts', import.meta.url)
  await writeFile(
    entry,
    `import { serve } from '${index}'
    await serve(() => { throw new Error('no database') })`,
  )
  expect(await failedStart({}, entry)).toEqual({
    code: 1,
    stderr: 'The API cannot start: no database\n',
  })
})

test('plugins, onLogin and errors of the application', async () => {
  const soldOut: ErrorKind = {
    code: 'SHOP_SOLD_OUT',
    statusCode: 409,
    retrySafe: false,
    mayHaveWritten: false,
    meaning: 'sold out',
  }
  const loggedIn: string[] = []
  const app = await appForThisTest(redis.socket, {
    errors: [soldOut],
    onLogin: (_request, user) => void loggedIn.push(user),
    async plugins(own) {
      own.addHook('onSend', async (_request, reply) => void reply.header('x-shop', 'open'))
    },
    async publicRoutes(own) {
      own.post('/purchases', async () => {
        throw new ApiError(soldOut)
      })
    },
  })
  const login = await app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' } })
  expect(login.headers['x-shop']).toBe('open')
  expect(loggedIn).toEqual(['ada'])
  const answer = await app.inject({ method: 'POST', url: '/purchases', payload: {} })
  expect(answer.json()).toEqual({
    statusCode: 409,
    code: 'SHOP_SOLD_OUT',
    error: 'Conflict',
    message: 'sold out',
  })
  const { components } = (await app.inject('/openapi.json')).json()
  expect(JSON.stringify(components.responses.Conflict)).toContain('SHOP_SOLD_OUT')
})

test('no handler of the application runs without a session or for a cross-site request', async () => {
  let handled = 0
  const app = await appForThisTest(redis.socket, {
    async routes(own) {
      own.post('/things', async (request) => {
        handled += 1
        return { user: request.user }
      })
    },
  })
  const { token } = (
    await app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' } })
  ).json<{ token: string }>()
  const ask = (headers: Record<string, string>) =>
    app.inject({ method: 'POST', url: '/things', headers, payload: {} })
  const forged = `${token.slice(0, -5)}AAAAA`
  const crossSite = { cookie: `__Host-onetrip=${token}`, origin: 'https://evil.example' }
  expect((await ask({})).json().code).toBe('ONETRIP_LOGIN_REQUIRED')
  expect((await ask(bearer(forged))).json().code).toBe('ONETRIP_INVALID_TOKEN')
  expect((await ask(crossSite)).json().code).toBe('ONETRIP_CROSS_SITE')
  expect(handled).toBe(0)
  expect((await ask(bearer(token))).json()).toEqual({ user: 'ada' })
  await app.store.logout(token)
  expect((await ask(bearer(token))).json().code).toBe('ONETRIP_UNKNOWN_SESSION')
  expect(handled).toBe(1)
  const { paths } = (await app.inject('/openapi.json')).json()
  expect(paths['/things'].post.security).toEqual([{ bearer: [] }, { cookie: [] }])
})

test('the README contains the tested example, which has less than 40 lines', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const text = readFileSync(example, 'utf8')
  expect(readme).toContain(`\`\`\`ts\n${text}\`\`\``)
  expect(text.split('\n').length).toBeLessThan(40)
})
