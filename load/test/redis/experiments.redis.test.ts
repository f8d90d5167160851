import { readFile } from 'node:fs/promises'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { describe, expect, test } from 'vitest'
import type { ThreadsRun } from '../../src/redis/experiments/io-threads-report.ts'
import type { ShortRun } from '../../src/redis/experiments/short-connections-runs.ts'
import { runOldExperiment as runExperiment } from '../support/experiment.ts'

const once = ['--quick', '--duration=0.1', '--builds=patched']

describe('short-connections', () => {
  test('has a row per way, with what a connection costs', async () => {
    const args = [...once, '--idle=0,50', '--long=5', '--transports=tcp,unix']
    const { text, result } = await runExperiment<ShortRun>('short-connections', args)
    expect(text).toMatch(/^Unix +50 idle +patched +[\d.]+ /m)
    expect(text).toMatch(/^beside 50 short +patched/m)
    expect(text).toContain('GET, O(1), +37 %')
    expect(result).toMatchObject({ options: { rounds: 1, duration: 0.1, idle: [0, 50] } })
    expect(result.samples).toHaveLength(4)
    for (const sample of result.samples) {
      expect(sample).toMatchObject({ errors: {}, replyErrors: 0 })
      expect(sample.connections).toBeGreaterThan(0)
      expect(sample.mainCpuMicros).toBeGreaterThan(0)
      expect(sample.cpuMicros).toBeGreaterThanOrEqual(sample.mainCpuMicros)
    }
    expect(result.long).toHaveLength(2)
  })

  test("--shape calls redis-benchmark as the documents' authors did", async () => {
    const fewer = ['--requests=2000', '--clients=300']
    const args = [...once, '--shape=get-8000', ...fewer, '--io-threads=2']
    const { text, result } = await runExperiment<{ tool: string }>('short-connections', args)
    expect(text).toContain('redis-benchmark -k 0 -t get -n 2000 -c 300')
    expect(result.samples.map(({ tool }) => tool)).toEqual(['redis-benchmark', 'our generator'])
    expect(result.servers).toMatchObject([{ ioThreads: 2, config: { maxclients: '700' } }])
  })

  test.for([
    ['--idle=1000000', /more descriptors than a process may have here/],
    ['--idle=5,x', /--idle.*whole number/],
    ['--builds=old', /"old" is none of patched, stock, baseline/],
  ] as const)('%s is refused', async ([arg, message]) => {
    const state = await temporaryFolder()
    const args = ['redis', 'short-connections', '--builds=patched', arg]
    const load = await run('cli.ts', { state, args, until: message })
    expect((await load.exited).code).toBe(1)
    expect(await filesIn(state)).toEqual([])
  })
})

test('io-threads has a row per command and setting', async () => {
  const { text, result } = await runExperiment<ThreadsRun>('io-threads', [...once, '--threads=1,2'])
  for (const command of ['SET', 'GET', 'MGET of 10', 'LPUSH']) {
    expect(text).toMatch(new RegExp(`^${command} +2 .*[\\d.]+ / [\\d.]+ / [\\d.]+ `, 'm'))
  }
  expect(text).toContain('The ceiling is a projection')
  expect(result.samples).toHaveLength(8)
  for (const sample of result.samples) {
    expect(sample).toMatchObject({ errors: {}, replyErrors: 0 })
    expect(sample.commandsPerSecond).toBeGreaterThan(0)
    const { below1, from1To2, above2 } = sample.latency
    expect(below1 + from1To2 + above2).toBeCloseTo(1)
  }
})

test('info shows that CLIENT LIST costs more the more clients there are', async () => {
  interface Asked {
    question: string | null
    idle: number
    mainCpuMillis: number | null
  }
  // Long enough for an answer even where every core has something else to do.
  const args = [...once, '--duration=0.3', '--idle=10,800']
  const { text, result } = await runExperiment<Asked>('info', args)
  expect(text).toMatch(/CLIENT LIST \(patched\): an answer costs [\d.]+ times as much beside 800/)
  const cost = (question: string | null, idle: number) =>
    result.samples.find((run) => run.question === question && run.idle === idle)?.mainCpuMillis
  expect(cost('CLIENT LIST', 800)).toBeGreaterThan(2 * (cost('CLIENT LIST', 10) ?? 0))
  expect(cost('INFO', 800)).toBeLessThan(cost('CLIENT LIST', 800) ?? 0)
  expect(cost(null, 10)).toBeNull()
})

test('an installed Redis is no build of ours', async () => {
  const state = await temporaryFolder()
  const env = { REDIS_SERVER: '/usr/bin/redis-server' }
  const load = await run('cli.ts', { state, args: ['redis', 'info'], env, until: /unset it/ })
  expect((await load.exited).code).toBe(1)
})

test('an interrupt leaves nothing', async () => {
  const state = await temporaryFolder()
  const args = ['redis', 'short-connections', ...once, '--rounds=1000', '--idle=100']
  const load = await run('cli.ts', { state, args, until: /^Round 1\/1000/ })
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  expect(load.output.at(-1)).toBe('Interrupted; nothing is left running.')
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
})

test('a Redis that goes away is reported', async () => {
  const state = await temporaryFolder()
  const args = ['redis', 'info', ...once, '--rounds=1000', '--idle=0']
  const load = await run('cli.ts', { state, args, until: /^Round 1\/1000/ })
  const own = await processesOf(state)
  const names = await Promise.all(own.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8')))
  process.kill(own[names.indexOf('redis-server\n')] ?? Number.NaN, 'SIGKILL')
  expect(await load.exited).toEqual({ code: 1, signal: null })
  expect(load.output.join('\n')).toContain('Redis (patched) ended by itself (SIGKILL)')
  expect(await processesOf(state)).toEqual([])
})
