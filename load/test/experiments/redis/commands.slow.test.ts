import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { requireRedisBenchmark } from '../../../src/drivers/redis/redis-benchmark.ts'
import { runExperiment } from '../../support/experiment.ts'

test('big-keys measures LRANGE by length, and DEL and UNLINK by type', async () => {
  const args = [
    '--quick',
    '--sets=big-keys',
    '--duration=0.3',
    '--lengths=1,5000',
    '--elements=200000',
  ]
  const { result } = await runExperiment('redis commands', args)
  const metric = (name: string, one: Record<string, unknown>) => {
    const same = (of: object) => expect.objectContaining(one).asymmetricMatch(of)
    return Number(result.samples.find((sample) => same(sample.case))?.values[name])
  }
  const reads = [1, 5_000].map((elements) => ({ command: 'LRANGE', elements }))
  for (const one of reads) expect(metric('mainCpuMicros', one)).toBeGreaterThan(0)
  // Without lists: a node of a list has many elements, so even DEL frees it quickly.
  for (const key of ['set', 'hash', 'sorted set']) {
    const [del = 0, unlink = 0] = ['DEL', 'UNLINK'].map((command) =>
      metric('backgroundCpuMicros', { command, key }),
    )
    expect(unlink).toBeGreaterThan(2 * del)
    expect(metric('executionMicros', { command: 'DEL', key })).toBeGreaterThan(0)
  }
  expect(result.samples.every(({ errors }) => errors === undefined)).toBe(true)
  expect(metric('executionMicros', { command: 'nothing' })).toBeNaN()
})

test('info shows that CLIENT LIST needs more CPU time with more clients', async () => {
  // Long enough for a reply on a busy machine.
  const args = ['--quick', '--sets=info', '--duration=0.3', '--idle=10,800']
  const { result } = await runExperiment('redis commands', args)
  const cost = (command: string, idle: number) =>
    result.samples.find(({ case: one }) => one.command === command && one.idle === idle)?.values
      .mainCpuMicros
  expect(cost('CLIENT LIST', 800)).toBeGreaterThan(2 * Number(cost('CLIENT LIST', 10)))
  expect(cost('INFO', 800)).toBeGreaterThan(0)
  expect(cost('nothing', 10)).toBeUndefined()
})

test('node-clients shows the share of redis-benchmark that clients of Node reach', async () => {
  const args = ['--quick', '--sets=node-clients', '--duration=0.2', '--requests=2000']
  const { text, result } = await runExperiment('redis commands', args)
  expect(text).toMatch(/^ioredis +kept .* 0\.50-0\.60$/m)
  const rates = (client: string, connection: string) =>
    result.samples
      .filter(({ case: one }) => one.client === client && one.connection === connection)
      .map(({ values }) => Number(values.perSecond))
  for (const client of ['redis-benchmark', 'ioredis', 'node-redis']) {
    const [kept, other] = [rates(client, 'kept'), rates(client, 'new for each command')]
    expect(kept).toHaveLength(4) // PING, SET, GET, LPUSH
    expect(Math.min(...kept, ...other)).toBeGreaterThan(0)
  }
})

const firstWord = (name: unknown) => /^[A-Z]+/.exec(String(name))?.[0]

test('commands runs the default tests of redis-benchmark and shows the articles', async () => {
  const { text, result } = await runExperiment('redis commands', [
    '--quick',
    '--sets=usual',
    '--requests=1000',
  ])
  expect(text).toMatch(/^PING .* 34,843 /m)
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
