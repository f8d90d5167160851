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

test('the demo as a process: a sale and a login; no connection remains', async () => {
  const { api, url } = await apiProcessForThisTest(
    { REDIS_URL: `unix://${redis.socket}` },
    demoProgram,
  )
  const token = await logIn(url, { user: 'ada' })
  const stock = await ask(`${url}/items/book/stock`, 'PUT', token, { pieces: 2 })
  expect(stock).toMatchObject({ status: 200, left: 2 })
  expect(await ask(`${url}/items/book/purchases`, 'POST', token)).toMatchObject({ left: 1 })
  await expect.poll(() => ask(`${url}/me/risk`, 'GET', token)).toMatchObject({ logins: 1 })
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
  const clients = String(await redis.redis.client('LIST'))
    .trim()
    .split('\n')
  expect(clients).toHaveLength(1) // this client
})

test('the demo does not start in production', async () => {
  const { code, stderr } = await failedStart({ NODE_ENV: 'production' }, demoProgram)
  expect(code).toBe(1)
  expect(stderr).toContain('NODE_ENV=production needs an authenticator')
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
