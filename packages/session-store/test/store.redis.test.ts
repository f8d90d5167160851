import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { parseInfo } from '../src/index.ts'
import { inMemory, readyStore } from './fixture.ts'
import { testModel } from './model-tests.ts'

const server = redisOfThisFile()
const url = () => `unix://${server.socket}`

testModel({ server, open: (options) => readyStore({ ...options, redis: url() }) })

test.skipIf(inMemory)('a view is one write of five commands', async () => {
  const store = await readyStore({ redis: url() })
  const { token } = await store.login('ada')
  await server.redis.config('RESETSTAT')
  await store.recordView(token, 'book')
  const stats = parseInfo(await server.redis.info('all'))
  const names = [...stats.keys()].flatMap(
    (name) => /^cmdstat_((?:z|h[gs]).*)/.exec(name)?.[1] ?? [],
  )
  expect(names.sort()).toEqual(['hget', 'zadd', 'zincrby', 'zremrangebyrank'])
  expect(Number(stats.get('total_reads_processed')) - 1).toBe(1) // the INFO is one more
})
