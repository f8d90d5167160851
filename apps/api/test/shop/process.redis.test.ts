import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { hashPassword } from '../../src/passwords/hash.ts'
import { shopKeys } from '../../src/shop/keys.ts'
import { apiProcessForThisTest } from '../api-process.ts'
import { clusterForThisTest } from '../cluster.ts'
import { bearer } from '../support.ts'

const redis = redisOfThisFile()
const PASSWORD = 'correct horse battery staple'

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

test('settings select sellers, sale method and risk features', async () => {
  const users = join(await temporaryFolder(), 'users')
  const hash = await hashPassword(PASSWORD)
  await writeFile(users, `ada:${hash}\nbob:${hash}\n`, { mode: 0o600 })
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    NODE_ENV: 'production',
    AUTH: 'password',
    USERS_FILE: users,
    SHOP_SELLERS: 'eve, ada',
    SALE_METHOD: 'optimistic',
    RISK_FEATURES: 'true',
  })
  const ada = await logIn(url, { user: 'ada', password: PASSWORD })
  const bob = await logIn(url, { user: 'bob', password: PASSWORD })
  expect(await ask(`${url}/demo/server`, 'GET', ada)).toMatchObject({ code: 'API_NOT_FOUND' })
  const stock = `${url}/items/book/stock`
  expect(await ask(stock, 'PUT', bob, { pieces: 2 })).toMatchObject({ code: 'API_FORBIDDEN' })
  expect(await ask(stock, 'PUT', ada, { pieces: 2 })).toMatchObject({ status: 200, left: 2 })
  expect(await ask(`${url}/items/book/purchases`, 'POST', bob)).toMatchObject({ left: 1 })
  expect(await redis.redis.info('commandstats')).toContain('cmdstat_watch:')
  await expect.poll(() => ask(`${url}/me/risk`, 'GET', ada)).toMatchObject({ logins: 1 })
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
  const clients = String(await redis.redis.client('LIST'))
    .trim()
    .split('\n')
  expect(clients).toHaveLength(1) // this client
})

test('workers with local caches see logins of other workers', async () => {
  const { primary, url } = await clusterForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    RISK_FEATURES: 'true',
  })
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
