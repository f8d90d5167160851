import { access } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { tinyRedis } from '../../../apps/server-build/test/tiny-redis.ts'
import { requireRedisBenchmark } from '../../src/redis/redis-benchmark.ts'

test('redis-benchmark is built when something needs it', async () => {
  const { redis, patches, archive, sha256, run } = await tinyRedis()
  await run(['build', 'stock', '--source', archive, '--sha256', sha256])
  vi.stubEnv('ONETRIP_HOME', dirname(redis))
  vi.stubEnv('REDIS_PATCHES', patches)
  vi.stubEnv('REDIS_SOURCE', '')
  onTestFinished(() => void vi.unstubAllEnvs())
  const program = await requireRedisBenchmark(new AbortController().signal)
  expect(program).toMatch(/\/tools-[0-9a-f]{12}\/bin\/redis-benchmark$/)
  await access(program)
})
