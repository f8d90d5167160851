import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from '../../../api/test/api-process.ts'
import { clusterForThisTest } from '../../../api/test/cluster.ts'
import { shopKeys } from '../../src/shop/keys.ts'
import { bearer, demoProgram } from '../support.ts'

const redis = redisOfThisFile()

async function ask(url: string, method: string, token?: string, body?: object) {
  const answer = await fetch(url, {
    method,
    headers: {
      ...(token !== undefined && bearer(token)),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const found = (await answer.json()) as Record<string, unknown>
  return { ...found, status: answer.status } as Record<string, unknown>
}

async function logIn(url: string, credentials: object): Promise<string> {
  const { token } = await ask(`${url}/login`, 'POST', undefined, credentials)
  return String(token)
}

test('SALE_METHOD selects how an item is sold, and no connection remains', async () => {
  const { api, url } = await apiProcessForThisTest(
    { REDIS_URL: `unix://${redis.socket}`, SALE_METHOD: 'optimistic' },
    demoProgram,
  )
  const token = await logIn(url, { user: 'ada' })
  const stock = await ask(`${url}/items/book/stock`, 'PUT', token, { pieces: 2 })
  expect(stock).toMatchObject({ status: 200, left: 2 })
  expect(await ask(`${url}/items/book/purchases`, 'POST', token)).toMatchObject({ left: 1 })
  expect(await redis.redis.info('commandstats')).toContain('cmdstat_watch:')
  await expect.poll(() => ask(`${url}/me/risk`, 'GET', token)).toMatchObject({ logins: 1 })
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
  const clients = String(await redis.redis.client('LIST'))
    .trim()
    .split('\n')
  expect(clients).toHaveLength(1) // this client
})

test.each<[Record<string, string>, string]>([
  [{ SALE_METHOD: 'fast' }, 'SALE_METHOD must be one of script, '],
  [
    { SALE_METHOD: 'optimistic', REDIS_URL: 'redis+cluster://a:1' },
    'SALE_METHOD=optimistic does not support a cluster',
  ],
  [{ NODE_ENV: 'production' }, 'NODE_ENV=production needs an authenticator'],
])('the demo does not start with %j', async (settings, message) => {
  const { code, stderr } = await failedStart(settings, demoProgram)
  expect(code).toBe(1)
  expect(stderr).toContain(message)
})

test('workers with local caches see logins of other workers', async () => {
  const { primary, url } = await clusterForThisTest(
    { REDIS_URL: `unix://${redis.socket}` },
    demoProgram,
  )
  const token = await logIn(url, { user: 'ada' })
  for (let logins = 1; logins <= 3; logins++) {
    // Any worker may handle it.
    await expect.poll(() => ask(`${url}/me/risk`, 'GET', token)).toMatchObject({ logins })
    await logIn(url, { user: 'ada' })
  }
  primary.signal('SIGTERM')
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(await redis.redis.hget(shopKeys.risk('ada'), 'logins')).toBe('4')
})
