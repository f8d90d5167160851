import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { failedStart } from '../../../api/test/api-process.ts'
import { ask, logIn } from '../../../api/test/client.ts'
import { clusterForThisTest } from '../../../api/test/cluster.ts'
import { shopKeys } from '../../src/shop/keys.ts'
import { demoProgram } from '../support.ts'

const redis = redisOfThisFile()

test('the demo does not start in production', async () => {
  const { code, stderr } = await failedStart({ NODE_ENV: 'production' }, demoProgram)
  expect(code).toBe(1)
  expect(stderr).toContain('NODE_ENV=production')
})

test('workers with local caches see logins of other workers; no connection remains', async () => {
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
  const clients = String(await redis.redis.client('LIST'))
  expect(clients.trim().split('\n')).toHaveLength(1) // this client
})
