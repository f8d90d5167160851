import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { ApiError, type ErrorKind } from '../src/errors.ts'
import { apiProcessForThisTest, failedStart } from './api-process.ts'
import { ask } from './client.ts'
import { appForThisTest, bearer, login } from './support.ts'

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

test("an application's entry file serves its login and routes in production", async () => {
  const { api, url } = await apiProcessForThisTest(
    {
      REDIS_URL: `unix://${redis.socket}`,
      NODE_ENV: 'production',
      USERS_DATABASE: await usersDatabase(),
    },
    example,
  )

  const login = (body: object) => ask(`${url}/login`, { body })
  const email = 'Ada@Example.com'
  const loggedIn = await login({ email, password: PASSWORD })
  expect(loggedIn).toMatchObject({ status: 200, user: expect.stringMatching(/^[0-9a-f-]{36}$/) })
  const { headers } = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: PASSWORD }),
  })
  expect(headers.get('set-cookie')).toMatch(/^__Host-onetrip=.*; Secure/)
  for (const wrong of [
    { email, password: 'wrong' },
    { email: 'eve@example.com', password: PASSWORD },
  ]) {
    expect(await login(wrong)).toMatchObject({ code: 'API_WRONG_CREDENTIALS' })
  }
  expect(await login({ user: 'ada' })).toMatchObject({ status: 400 })

  const profile = { status: 200, name: 'Ada', email: 'ada@example.com' }
  expect(await ask(`${url}/me/profile`, { token: String(loggedIn.token) })).toEqual(profile)
  expect(await ask(`${url}/me/profile`)).toMatchObject({ status: 401 })
  expect((await fetch(`${url}/welcome`)).status).toBe(200)
  expect(await ask(`${url}/welcome`, { body: {} })).toMatchObject({ status: 404 })

  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
  expect(api.lastLines.join('\n')).not.toContain(PASSWORD)
}, 90_000)

test.each([
  [
    'with settings of the caller',
    `const config = { ...loadConfig(), REDIS_URL: 'unix:///nowhere', STARTUP_DEADLINE_MS: 300 }
    await serve({ config })`,
    'no connection after 0.3 s',
  ],
  [
    'if its function throws',
    `await serve(() => { throw new Error('no database') })`,
    'The API cannot start: no database\n',
  ],
])('serve() reports why it cannot start: %s', async (_, code, words) => {
  const entry = join(await temporaryFolder(), 'entry.ts')
  const index = new URL('../src/index.ts', import.meta.url)
  await writeFile(entry, `import { loadConfig, serve } from '${index}'\n${code}`)
  const failed = await failedStart({ REDIS_URL: `unix://${redis.socket}` }, entry)
  expect(failed).toEqual({ code: 1, stderr: expect.stringContaining(words) })
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
  expect(JSON.stringify(components.responses.Error)).toContain('SHOP_SOLD_OUT')
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
  const token = await login(app)
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
