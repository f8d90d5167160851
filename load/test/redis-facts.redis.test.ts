import { unixUrl } from '@onetrip/stack/address.ts'
import { redisFacts } from '@onetrip/stack/redis-info.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'

test('I/O threads are read from INFO, or else from the configuration', async () => {
  const { socket } = await redisForThisTest({ config: { 'io-threads': '2' } })
  const client = new Redis(socket)
  onTestFinished(() => client.disconnect())
  expect(await redisFacts(unixUrl(socket))).toMatchObject({ ioThreads: 2 })
  await client.call('ACL', 'SETUSER', 'default', '-config')
  const isListed = (await client.info('everything')).match(/^io_thread_1:/m) !== null // since Redis 8
  expect(await redisFacts(unixUrl(socket))).toMatchObject({ ioThreads: isListed ? 2 : null })
})
