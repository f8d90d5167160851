import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from './api-process.ts'

/** Logs in, and returns the authorization header. */
async function loginAt(url: string): Promise<{ authorization: string }> {
  const answer = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user: 'ada' }),
  })
  const { token } = (await answer.json()) as { token: string }
  return { authorization: `Bearer ${token}` }
}

test('SIGTERM: requests in flight are answered, then the process exits with 0', async () => {
  const redis = await redisForThisTest()
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    JANITOR_INTERVAL_SECONDS: '0', // its updates would count as in flight
  })
  const answer = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user: 'ada' }),
  })
  const { token } = (await answer.json()) as { token: string }
  expect(answer.status).toBe(200)
  redis.program.signal('SIGSTOP')
  const view = fetch(`${url}/views`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ item: 'book' }),
  })
  // Wait until the view is in flight.
  await expect
    .poll(async () => (await fetch(`${url}/metrics`)).text())
    .toContain('onetrip_store_in_flight 1')
  api.signal('SIGTERM')
  redis.program.signal('SIGCONT')
  expect((await view).status).toBe(200)
  expect(await api.exited).toEqual({ code: 0, signal: null })
  expect(api.lastLines.join('\n')).not.toContain(token)
  expect(api.lastLines.join('\n')).toContain('"signal":"SIGTERM"')
})

test.each(['batch', 'naive'])(
  '%s: the janitor ends sessions above the maximum',
  async (strategy) => {
    const redis = await redisForThisTest()
    const { url } = await apiProcessForThisTest({
      REDIS_URL: `unix://${redis.socket}`,
      STRATEGY: strategy,
      MAX_SESSIONS: '1',
      JANITOR_INTERVAL_SECONDS: '1',
    })
    const [older, newer] = [await loginAt(url), await loginAt(url)]
    await expect.poll(async () => (await fetch(`${url}/me`, { headers: older })).status).toBe(401)
    expect((await fetch(`${url}/me`, { headers: newer })).status).toBe(200)
  },
)

test('a login above the maximum per user ends the oldest session', async () => {
  const redis = await redisForThisTest()
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    MAX_SESSIONS_PER_USER: '1',
  })
  const [older, newer] = [await loginAt(url), await loginAt(url)]
  expect((await fetch(`${url}/me`, { headers: older })).status).toBe(401)
  expect((await fetch(`${url}/me`, { headers: newer })).status).toBe(200)
})

/** Makes Node resolve `localhost` to two addresses, as many machines do. */
const twoAddresses = `import dns from 'node:dns'
const { lookup } = dns
const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
dns.lookup = (host, options, done) =>
  host === 'localhost' && options.all
    ? process.nextTick(done, null, addresses)
    : lookup(host, options, done)
`

test.runIf(process.platform === 'linux')('HOST=localhost listens on one address', async () => {
  const redis = await redisForThisTest()
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    HOST: 'localhost',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(twoAddresses)}`,
  })
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  const other = url.replace(/\/\/[^:]+:/, '//127.0.0.2:')
  await expect(fetch(`${other}/healthz`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
})

test('without Redis, startup fails with a message after STARTUP_DEADLINE_MS', async () => {
  const { code, stderr } = await failedStart({
    REDIS_URL: 'unix:///nowhere/redis.sock',
    STARTUP_DEADLINE_MS: '1000',
  })
  expect(code).toBe(1)
  expect(stderr).toContain('no connection after 1 s')
  expect(stderr).toContain('ENOENT')
})

test('startup fails with an invalid database, and the reason does not contain the password', async () => {
  const redis = await redisForThisTest()
  const { code, stderr } = await failedStart({
    REDIS_URL: `unix://:a-password@localhost${redis.socket}?db=99`,
    STARTUP_DEADLINE_MS: '3000',
  })
  expect(code).toBe(1)
  expect(stderr).toContain('Redis refused to select database 99: ERR DB index is out of range')
  expect(stderr).not.toContain('a-password')
})

test.each([
  [{ REDIS_URL: 'redis://127.0.0.1/abc' }, 'REDIS_URL: invalid Redis URL: the database must be'],
  [{ REDIS_URL: 'redis://me:12/34@127.0.0.1' }, 'REDIS_URL: invalid Redis URL: a / ? # or @ in'],
  [{ PORT: 'x' }, 'PORT'],
  [{ SESSION_SECRETS: 'short' }, 'SESSION_SECRETS'],
  [{ NODE_ENV: 'production' }, 'NODE_ENV=production'],
])('startup fails with %j', async (more, words) => {
  const { code, stderr } = await failedStart(more)
  expect(code).toBe(1)
  expect(stderr).toContain(words)
})

test.each(['1', '2'])(
  'with %s workers, one log line and a metric say that frames are off',
  async (workers) => {
    const hook = `import { registerHooks } from 'node:module'
      registerHooks({ load: (url, context, next) => url.endsWith('/ioredis/package.json')
        ? { format: 'json', source: '{"version":"6.99.0"}', shortCircuit: true }
        : next(url, context) })`
    const redis = await redisForThisTest()
    const { api, url } = await apiProcessForThisTest({
      REDIS_URL: `unix://${redis.socket}`,
      WORKERS: workers,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`,
    })
    const lines = api.lastLines.filter((line) => line.includes('ONETRIP_FRAMES_OFF'))
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, msg: expect.stringContaining('ioredis 6.99.0 is installed') },
    ])
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(metrics).toMatch(/^onetrip_info{.*sender="pipeline"/m)
  },
)

test.each(['1', '2'])(
  'with %s workers, one log line warns that Redis may evict sessions',
  async (workers) => {
    const config = { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' }
    const redis = await redisForThisTest({ config })
    const { api } = await apiProcessForThisTest({
      REDIS_URL: `unix://${redis.socket}`,
      WORKERS: workers,
    })
    const lines = api.lastLines.filter((line) => line.includes('ONETRIP_EVICTION'))
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, msg: expect.stringContaining('Set maxmemory-policy noeviction') },
    ])
  },
)
