import { parseInfo } from '@onetrip/session-store'
import { unixUrl } from '@onetrip/stack/address.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { exclusivePool } from '../src/experiments/pools/exclusive.ts'

test.for([
  ['wait', 0],
  ['open', 2],
] as const)(
  'an exhausted pool (%s) opens %i connections for two more callers',
  async ([exhausted, more]) => {
    const { socket } = await redisForThisTest()
    const redis = new Redis(socket)
    onTestFinished(() => redis.disconnect())
    const info = async (name: string) => Number(parseInfo(await redis.info()).get(name))
    const target = { url: unixUrl(socket), poolSize: 1, deadlineMs: 10_000 }
    const pool = exclusivePool(target, exhausted)
    await expect.poll(() => info('connected_clients')).toBe(2)

    // The connection is given back after an error reply, too.
    await pool.send({ commands: [['SET', 'key', 0]] })
    expect(await pool.send({ commands: [['LPUSH', 'key', 1]] })).toEqual([expect.any(Error)])
    const before = await info('total_connections_received')
    const [a, b, c] = await Promise.all(
      [1, 2, 3].map((n) =>
        pool.send({
          commands: [
            ['INCR', 'key'],
            ['ECHO', n],
          ],
        }),
      ),
    )
    expect([a?.[1], b?.[1], c?.[1]]).toEqual(['1', '2', '3'])
    expect(await redis.get('key')).toBe('3')
    expect((await info('total_connections_received')) - before).toBe(more)

    await pool.close()
    await expect.poll(() => info('connected_clients')).toBe(1)
  },
)
