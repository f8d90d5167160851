import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { findBuild } from '../src/find.ts'
import { homeOf } from '../src/home.ts'
import { connected, freePort, redisCli } from './real-redis.ts'

// Tested only if it is already built: compiling takes minutes, and only the experiments need baseline.
const baseline = await findBuild(homeOf(process.env), 'baseline', {}, process.env)

const BYTES = 1_000_000

test.runIf(baseline)(
  'INFO of baseline reads the buffers of each client, as Redis 4 did',
  async () => {
    const port = await freePort()
    // Upstream's INFO shows what the cron has measured: once a second here.
    const redis = await redisForThisTest({ build: 'baseline', port, config: { hz: '1' } })
    const client = await connected(port)
    const largest = async () => {
      const info = await redisCli(redis.socket, 'INFO', 'clients')
      return Number(/^client_recent_max_input_buffer:(\d+)/m.exec(info)?.[1])
    }
    expect(await largest()).toBeLessThan(BYTES)
    client.write(`*2\r\n$4\r\nECHO\r\n$${BYTES}\r\n${'x'.repeat(BYTES / 2)}`)
    await expect.poll(() => redisCli(redis.socket, 'CLIENT', 'LIST')).toMatch(/ qbuf=500\d{3} /)
    expect(await largest()).toBeGreaterThanOrEqual(BYTES)
    const info = await redisCli(redis.socket, 'INFO', 'memory')
    expect(Number(/^mem_clients_normal:(\d+)/m.exec(info)?.[1])).toBeGreaterThanOrEqual(BYTES)
  },
)
