import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { ApiError, type ErrorKind } from '../src/errors.ts'
import { failedStart } from './api-process.ts'
import { appForThisTest, bearer, login } from './support.ts'

const redis = redisOfThisFile()

test.each([
  [
    'with settings of the caller',
    `const config = { ...loadConfig(), NODE_ENV: 'production' }
    await serve({ config })`,
    'NODE_ENV=production',
  ],
  [
    'if its function throws',
    `await serve(() => { throw new Error('no database') })`,
    'The API cannot start: no database\n',
  ],
  [
    'with an option that has been removed',
    'await serve({ onLogin() {} } as never)',
    'The API cannot start: the option onLogin has been removed: add a hook in `plugins`',
  ],
])('serve() reports why it cannot start: %s', async (_, code, words) => {
  const entry = join(await temporaryFolder(), 'entry.ts')
  const index = new URL('../src/index.ts', import.meta.url)
  await writeFile(entry, `import { loadConfig, serve } from '${index}'\n${code}`)
  const failed = await failedStart({ REDIS_URL: `unix://${redis.socket}` }, entry)
  expect(failed).toEqual({ code: 1, stderr: expect.stringContaining(words) })
})

test('plugins and errors of the application', async () => {
  const soldOut: ErrorKind = {
    code: 'SHOP_SOLD_OUT',
    statusCode: 409,
    retrySafe: false,
    mayHaveWritten: false,
    meaning: 'sold out',
  }
  const app = await appForThisTest(redis.socket, {
    errors: [soldOut],
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
