import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import type { Sample } from '../../../src/rounds/result.ts'
import { runExperiment } from '../../support/experiment.ts'
import { runLoad } from '../../support/run.ts'

const once = ['--quick', '--duration=0.1', '--builds=patched']

const casesOf = (samples: readonly Sample[], ...factors: string[]) =>
  samples.map(({ case: one }) => factors.map((name) => one[name]).join(' '))

/** Expects no errors, and values of all metrics except those in `missing`. */
function expectValues({ values, errors }: Sample, ...missing: string[]) {
  expect(errors).toBeUndefined()
  const known = Object.entries(values).filter(
    ([name]) => name !== 'elsewhere' && !missing.includes(name),
  )
  for (const [name, value] of known) expect(value, name).toBeGreaterThanOrEqual(0)
}

describe('redis short', () => {
  test('measures short connections, and long connections at the same time', async () => {
    const args = [...once, '--idle=0,50', '--long=5', '--transports=tcp,unix']
    const { text, result } = await runExperiment('redis short', args)
    expect(text).toMatch(/^Unix socket +50 +patched .*[\d.]+ /m)
    expect(text).toMatch(/^long with short +patched /m)
    expect(casesOf(result.samples, 'load', 'transport', 'idle')).toEqual([
      'short tcp 0',
      'short tcp 50',
      'short unix 0',
      'short unix 50',
      'long tcp 0',
      'long beside short tcp 0',
    ])
    for (const sample of result.samples) {
      const { mainCpuMicros, cpuMicros } = sample.values
      const beside = sample.case.load === 'long beside short'
      expectValues(sample, ...(beside ? ['mainCpuMicros', 'cpuMicros'] : []))
      if (beside) expect(mainCpuMicros).toBeNull()
      else expect(cpuMicros).toBeGreaterThanOrEqual(Number(mainCpuMicros))
    }
  })

  test('measures loads that leave Redis idle most of the time', async () => {
    const args = [...once, '--shape=rates,burst,half-close']
    const { text, result } = await runExperiment('redis short', args)
    expect(text).toContain('Time until they see the end of the connection')
    const loads = casesOf(result.samples, 'load')
    expect(loads).toEqual([...Array(12).fill('rates'), 'burst', 'half-close'])
    for (const { case: one, values, errors } of result.samples) {
      expect(errors).toBeUndefined()
      expect(values.p50).toBeGreaterThan(0)
      if (one.load === 'rates') expect(values.cpuMicros).toBeGreaterThan(0)
    }
  })

  test('--shape runs redis-benchmark like the articles', async () => {
    const shape = ['--shape=get-8000', '--requests=10000']
    const args = [...once, ...shape, '--threads=2']
    const { text, result } = await runExperiment('redis short', args)
    expect(text).toContain('redis-benchmark -k 0 -t get -n 10000 -c 8000')
    // Without a network namespace, the limits are not changed.
    const limits = result.network === 'own namespace' ? 'none' : 'as usual'
    expect(result.load).toMatchObject({ 'TIME_WAIT and backlog': limits })
    expect(casesOf(result.samples, 'load', 'tool', 'threads')).toEqual([
      'get-8000 redis-benchmark 2',
      'get-8000 our generator 2',
    ])
    for (const sample of result.samples) {
      expectValues(sample)
      const isTheirs = sample.case.tool === 'redis-benchmark'
      const command = expect.stringMatching(/^redis-benchmark -p \d+ -k [01] -t/)
      expect(sample.details).toEqual(isTheirs ? { command } : undefined)
    }
  })
})

describe('redis threads', () => {
  test('has a row for each command, size and setting', async () => {
    const args = ['--threads=1,2', '--bytes=64,20000', '--pipeline=3', '--connections=8']
    const { result } = await runExperiment('redis threads', [...once, ...args])
    const loads = ['64', '20000']
    expect(casesOf(result.samples, 'command', 'bytes', 'threads')).toEqual(
      ['GET', 'SET', 'MIX', 'MGET', 'LPUSH'].flatMap((command) =>
        loads.flatMap((load) => [`${command} ${load} 1`, `${command} ${load} 2`]),
      ),
    )
    expect(result.load).toEqual({ "Redis's I/O threads": '1, 2' })
    for (const sample of result.samples) {
      expectValues(sample)
      const { perSecond, below1, above2 } = sample.values
      expect(perSecond).toBeGreaterThan(0)
      expect(Number(below1) + Number(above2)).toBeLessThan(1.001) // rounded to six digits
    }
  })
})

test.for([
  ['short --idle=1000000', /concurrent connections need more descriptors/, {}],
  ['short --maxclients=10', /max number of clients reached/, {}],
  ['short --requests=10', /--requests has no effect without --shape/, {}],
  ['threads --bytes=65536 --pipeline=1,100', /MGET of 64 kB, pipeline 100: .* 1 GB/, {}],
  ['commands', /Unset REDIS_SERVER/, { REDIS_SERVER: '/usr/bin/redis-server' }],
] as const)('rejects redis %s', async ([line, message, env]) => {
  const state = await temporaryFolder()
  const args = ['redis', ...line.split(' '), '--builds=patched']
  const load = await runLoad({ state, args, env, until: message })
  expect((await load.exited).code).toBe(1)
  expect(await filesIn(state)).toEqual([])
})

test('when it is killed, its programs end', async () => {
  const state = await temporaryFolder()
  // One Redis is paused meanwhile.
  const args = ['redis', 'short', ...once, '--idle=100,200', '--rounds=1000']
  const load = await runLoad({ state, args, until: /^Round 1\b/ })
  expect((await processesOf(state)).length).toBeGreaterThan(1)
  load.signal('SIGKILL')
  await expect.poll(() => processesOf(state)).toEqual([])
})
