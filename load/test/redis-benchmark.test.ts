import { access } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Problem } from '@onetrip/stack/problem.ts'
import { afterEach, expect, test, vi } from 'vitest'
import { tinyRedis } from '../../apps/server-build/test/tiny-redis.ts'
import { requireRedisBenchmark } from '../src/drivers/redis/redis-benchmark.ts'

afterEach(() => void vi.unstubAllEnvs())

/** redis-benchmark, from a home with one server and no tools. */
async function benchmarkOf(makefile?: string): Promise<string> {
  const { redis, patches, archive, sha256, run } = await tinyRedis({ makefile })
  await run(['build', 'stock', '--source', archive, '--sha256', sha256])
  vi.stubEnv('ONETRIP_HOME', dirname(redis))
  vi.stubEnv('REDIS_PATCHES', patches)
  vi.stubEnv('REDIS_SOURCE', '')
  const program = await requireRedisBenchmark(new AbortController().signal)
  await access(program)
  return program
}

test('redis-benchmark is built when something needs it', async () => {
  expect(await benchmarkOf()).toMatch(/\/tools-[0-9a-f]{12}\/bin\/redis-benchmark$/)
})

test('a redis-benchmark that cannot be built is a problem to be reported', async () => {
  const makefile =
    'redis-server: main.c\n\t$(CC) $(REDIS_CFLAGS) -o $@ $<\nredis-cli redis-benchmark:\n\tfalse\n'
  await expect(benchmarkOf(makefile)).rejects.toThrow(Problem)
})
