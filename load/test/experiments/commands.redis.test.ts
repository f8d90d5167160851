import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { requireRedisBenchmark } from '../../src/drivers/redis/redis-benchmark.ts'
import { runExperiment } from '../support/experiment.ts'

const firstWord = (name: unknown) => /^[A-Z]+/.exec(String(name))?.[0]

test('commands runs the default tests of redis-benchmark and shows the source articles', async () => {
  const { text, result } = await runExperiment('commands', [
    '--quick',
    '--sets=usual',
    '--requests=1000',
  ])
  expect(text).toMatch(/^PING .* 34,843 /m)
  expect(text).toMatch(/^LRANGE of 600 .* 9,042 /m)
  expect(text).toMatch(/^patched: at [\d,]+ PING\/s, Redis's main thread works [\d.]+ %/m)
  for (const { values, details } of result.samples) {
    expect(details?.command).toContain(' -c 1 -n 1000 ')
    expect(values.perSecond).toBeGreaterThan(0)
    expect(values.mainCpuMicros).toBeGreaterThan(0)
  }

  const redis = await redisForThisTest()
  const program = await requireRedisBenchmark(new AbortController().signal)
  const args = ['-s', redis.socket, '-n', '1', '--csv']
  const { stdout } = await promisify(execFile)(program, args)
  const [, ...lines] = stdout.trim().split('\n')
  const names = lines.map((line) => line.slice(1)).filter((name) => !name.includes('needed to'))
  expect(result.samples.map(({ case: one }) => firstWord(one.command))).toEqual(
    names.map(firstWord),
  )
})
