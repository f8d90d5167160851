import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from './api-process.ts'
import { ask, logIn } from './client.ts'

const server = redisOfThisFile()

test('sessions above a maximum end', async () => {
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${server.socket}`,
    MAX_SESSIONS: '2',
    MAX_SESSIONS_PER_USER: '1',
    JANITOR_INTERVAL_SECONDS: '1',
  })
  const statusOf = async (token: string) => (await ask(`${url}/me`, { token })).status
  const [older, newer] = [await logIn(url), await logIn(url)]
  expect([await statusOf(older), await statusOf(newer)]).toEqual([401, 200]) // by the login
  const others = [await logIn(url, 'bob'), await logIn(url, 'eve')]
  await expect.poll(() => statusOf(newer)).toBe(401) // by the janitor
  for (const token of others) expect(await statusOf(token)).toBe(200)
})

test('SESSION_RENEW_SECONDS renews the cookie of a session in use', async () => {
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${server.socket}`,
    SESSION_RENEW_SECONDS: '1',
  })
  const cookie = `onetrip=${await logIn(url)}`
  const renewed = async () =>
    (await fetch(`${url}/me/views`, { headers: { cookie } })).headers.get('set-cookie')
  expect(await renewed()).toBe(null)
  await expect.poll(renewed).toContain(cookie.slice(0, 40))
})

/** An option for Node that runs this module first. */
const imported = (module: string) =>
  `--import=data:text/javascript,${encodeURIComponent(`${module}\n`)}`

/** Makes Node resolve `localhost` to two addresses, as many machines do. */
const twoAddresses = `import dns from 'node:dns'
const { lookup } = dns
const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
dns.lookup = (host, options, done) =>
  host === 'localhost' && options.all
    ? process.nextTick(done, null, addresses)
    : lookup(host, options, done)`

test.runIf(process.platform === 'linux')('HOST=localhost listens on one address', async () => {
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${server.socket}`,
    HOST: 'localhost',
    NODE_OPTIONS: imported(twoAddresses),
  })
  expect((await ask(`${url}/healthz`)).status).toBe(200)
  const other = url.replace(/\/\/[^:]+:/, '//127.0.0.2:')
  await expect(fetch(`${other}/healthz`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
})

test.concurrent.for([
  ['without Redis, after ten seconds', 'unix:///nowhere/redis.sock', 'no connection after 10 s'],
  ['without the database', '?db=99', 'Redis refused to select database 99: ERR DB index'],
])('startup fails %s, and shows no password', async ([, where = '', words], { expect }) => {
  const REDIS_URL = where.startsWith('?')
    ? `unix://:a-password@localhost${server.socket}${where}`
    : where
  const { code, stderr } = await failedStart({ REDIS_URL })
  expect(code).toBe(1)
  expect(stderr.match(/cannot start/g)).toHaveLength(1)
  expect(stderr).toContain(words)
  expect(stderr).not.toContain('a-password')
})

test('each warning is one log line', async () => {
  const otherIoredis = `import { registerHooks } from 'node:module'
    registerHooks({ load: (url, context, next) => url.endsWith('/ioredis/package.json')
      ? { format: 'json', source: '{"version":"6.99.0"}', shortCircuit: true }
      : next(url, context) })`
  const config = { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' }
  const redis = await redisForThisTest({ config })
  const { api } = await apiProcessForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    NODE_OPTIONS: imported(otherIoredis),
    NODE_ENV: '',
  })
  const unset = 'NODE_ENV is not set: logins need no password, and the session cookie works without'
  for (const code of ['ONETRIP_FRAMES_OFF', 'ONETRIP_EVICTION', unset]) {
    const lines = api.lastLines.filter((line) => line.includes(code))
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 40 }])
  }
})
