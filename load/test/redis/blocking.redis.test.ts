import { unixUrl } from '@onetrip/stack/address.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { BlockingWatch } from '../../src/drivers/redis/blocking.ts'

test('a command that blocks Redis is reported with its name and time, once', async () => {
  const { socket } = await redisForThisTest({ config: { 'enable-debug-command': 'local' } })
  const watch = new BlockingWatch(unixUrl(socket))
  const redis = new Redis(socket)
  try {
    await watch.begin()
    await redis.call('DEBUG', 'SLEEP', '0.02')
    const blocking = await watch.end()
    expect(blocking.slow).toBeGreaterThanOrEqual(1)
    expect(blocking.longest?.command).toBe('DEBUG')
    expect(blocking.longest?.milliseconds).toBeGreaterThanOrEqual(20)
    expect(blocking.events.command).toBeGreaterThanOrEqual(20)
    await watch.begin()
    expect((await watch.end()).longest?.command).not.toBe('DEBUG')

    // Its own commands do not count, however long they take.
    await watch.begin()
    await redis.config('SET', 'slowlog-log-slower-than', 0)
    await redis.slowlog('RESET')
    expect((await watch.end()).longest).toBeNull()
  } finally {
    redis.disconnect()
    watch.close()
  }
})
