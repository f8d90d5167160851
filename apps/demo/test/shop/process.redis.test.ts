import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from '../../../api/test/api-process.ts'
import { ask, logIn } from '../../../api/test/client.ts'
import { clusterForThisTest } from '../../../api/test/cluster.ts'
import { shopKeys } from '../../src/shop/keys.ts'
import { demoProgram } from '../support.ts'

const redis = redisOfThisFile()

test('the demo as a process: a sale and a login; no connection remains', async () => {
  const settings = { REDIS_URL: `unix://${redis.socket}` }
  const { api, url } = await apiProcessForThisTest(settings, demoProgram)
  const token = await logIn(url)
  const stock = { method: 'PUT', token, body: { pieces: 2 } }
  expect(await ask(`${url}/items/book/stock`, stock)).toMatchObject({ status: 200, left: 2 })
  const purchase = { method: 'POST', token }
  expect(await ask(`${url}/items/book/purchases`, purchase)).toMatchObject({ left: 1 })
  await expect.poll(() => ask(`${url}/me/risk`, { token })).toMatchObject({ logins: 1 })
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
  const clients = String(await redis.redis.client('LIST'))
  expect(clients.trim().split('\n')).toHaveLength(1) // this client
})

test('the demo does not start in production', async () => {
  const { code, stderr } = await failedStart({ NODE_ENV: 'production' }, demoProgram)
  expect(code).toBe(1)
  expect(stderr).toContain('NODE_ENV=production')
})

test('workers with local caches see logins of other workers', async () => {
  const settings = { REDIS_URL: `unix://${redis.socket}` }
  const { primary, url } = await clusterForThisTest(settings, demoProgram)
  const token = await logIn(url)
  for (let logins = 1; logins <= 3; logins++) {
    // Any worker may handle it.
    await expect.poll(() => ask(`${url}/me/risk`, { token })).toMatchObject({ logins })
    await logIn(url)
  }
  primary.signal('SIGTERM')
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(await redis.redis.hget(shopKeys.risk('ada'), 'logins')).toBe('4')
})
