import { readFile } from 'node:fs/promises'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import { countInstructions } from '../../src/drivers/redis/instructions.ts'
import type { Sample } from '../../src/experiment/result.ts'
import { runExperiment } from '../support/experiment.ts'
import { namespaces } from '../support/namespaces.ts'
import { expectNothingLeft, runLoad } from '../support/run.ts'

const once = ['--quick', '--duration=0.1', '--builds=patched']

const casesOf = (samples: readonly Sample[], ...factors: string[]) =>
  samples.map(({ case: one }) => factors.map((name) => one[name]).join(' '))

/** Without perf, or on many virtual machines, nothing counts instructions. */
const noWork = async () => undefined
const counted = await countInstructions(process.pid, noWork, AbortSignal.timeout(30_000))
const uncounted = counted.instructions === null ? ['instructions'] : []

/** Expects no errors, and values of all metrics except those in `missing`. */
function expectValues({ values, errors }: Sample, ...missing: string[]) {
  expect(errors).toBeUndefined()
  const known = Object.entries(values).filter(
    ([name]) => name !== 'elsewhere' && !missing.includes(name),
  )
  for (const [name, value] of known) expect(value, name).toBeGreaterThanOrEqual(0)
}

describe('short-connections', () => {
  test('measures short connections, and long connections beside them', async () => {
    const args = [...once, '--idle=0,50', '--long=5', '--transports=tcp,unix']
    const { text, result } = await runExperiment('short-connections', args)
    expect(text).toMatch(/^Unix socket +50 idle +patched .*[\d.]+ /m)
    expect(text).toMatch(/^long beside short +patched /m)
    expect(result).toMatchObject({ options: { rounds: 1, duration: 0.1, idle: [0, 50] } })
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
      expectValues(sample, ...uncounted, ...(beside ? ['mainCpuMicros', 'cpuMicros'] : []))
      if (beside) expect(mainCpuMicros).toBeNull()
      else expect(cpuMicros).toBeGreaterThanOrEqual(Number(mainCpuMicros))
    }
  })

  test.skipIf(!namespaces)('clients connect from a second network namespace', async () => {
    const args = [...once, '--idle=0', '--long=5', '--transports=veth']
    const { result } = await runExperiment('short-connections', args)
    expect(casesOf(result.samples, 'load', 'transport')).toEqual([
      'short veth',
      'long veth',
      'long beside short veth',
    ])
    // The addresses of the clients exist in that namespace only.
    for (const { errors } of result.samples) expect(errors).toBeUndefined()
  })

  test('--shape runs redis-benchmark like the source articles', async () => {
    const shape = ['--shape=get-8000,ping-10000-kept', '--requests=20000']
    const args = [...once, ...shape, '--io-threads=2']
    const { text, result } = await runExperiment('short-connections', args)
    expect(text).toContain('redis-benchmark -k 0 -t get -n 20000 -c 8000')
    expect(text).toContain('redis-benchmark -k 1 -t ping_mbulk -n 20000 -c 10000')
    // Without a network namespace, the limits are not changed.
    const limits = result.network === 'own namespace' ? 'none' : 'as usual'
    expect(result.load).toMatchObject({ 'TIME_WAIT and backlog': limits })
    expect(casesOf(result.samples, 'load', 'tool', 'threads')).toEqual([
      'get-8000 redis-benchmark 2',
      'get-8000 our generator 2',
      'ping-10000-kept redis-benchmark 2',
      'ping-10000-kept our generator 2',
    ])
    for (const sample of result.samples) {
      expectValues(sample)
      const isTheirs = sample.case.tool === 'redis-benchmark'
      const command = expect.stringMatching(/^redis-benchmark -p \d+ -k [01] -t/)
      expect(sample.details).toEqual(isTheirs ? { command } : undefined)
    }
  })

  test.for([
    ['--idle=1000000', /concurrent connections need more descriptors/],
    ['--maxclients=10', /max number of clients reached/],
    ['--requests=10', /--requests has no effect without --shape/],
    ['--shape=get-8000 --transports=veth', /--transports veth has no effect with --shape/],
  ] as const)('rejects %s', async ([arg, message]) => {
    const state = await temporaryFolder()
    const args = ['short-connections', '--builds=patched', ...arg.split(' ')]
    const load = await runLoad({ state, args, until: message })
    expect((await load.exited).code).toBe(1)
    expect(await filesIn(state)).toEqual([])
  })
})

describe('io-threads', () => {
  test('has a row for each command, size, pipeline and setting', async () => {
    const args = ['--threads=1,2', '--bytes=64,20000', '--pipeline=1,3', '--connections=8']
    const { text, result } = await runExperiment('io-threads', [...once, ...args])
    const loads = ['64 1', '64 3', '20000 1', '20000 3']
    expect(casesOf(result.samples, 'command', 'bytes', 'pipeline', 'threads')).toEqual(
      ['GET', 'SET', 'MIX', 'MGET', 'LPUSH'].flatMap((command) =>
        loads.flatMap((load) => [`${command} ${load} 1`, `${command} ${load} 2`]),
      ),
    )
    expect(result.load).toEqual({ "Redis's I/O threads": '1, 2' })
    expect(text).toMatch(/^SET and GET, 1:1 +20000 B +3 .*[\d.]+ /m)
    expect(text).toContain('Extrapolated from the CPU time of each thread, not measured')
    for (const sample of result.samples) {
      expectValues(sample)
      const { perSecond, below1, above2 } = sample.values
      expect(perSecond).toBeGreaterThan(0)
      expect(Number(below1) + Number(above2)).toBeLessThan(1.001) // rounded to six digits
    }
  })

  test('rejects options that could need gigabytes of memory', async () => {
    const state = await temporaryFolder()
    const args = ['io-threads', '--builds=patched', '--bytes=65536', '--pipeline=1,100']
    const load = await runLoad({ state, args, until: /MGET of 64 kB, pipeline 100: .* 1 GB/ })
    expect((await load.exited).code).toBe(1)
    expect(await filesIn(state)).toEqual([])
  })
})

test('rejects REDIS_SERVER', async () => {
  const state = await temporaryFolder()
  const env = { REDIS_SERVER: '/usr/bin/redis-server' }
  const load = await runLoad({ state, args: ['commands'], env, until: /Unset REDIS_SERVER/ })
  expect((await load.exited).code).toBe(1)
})

test('an interrupt stops all programs and removes all files', async () => {
  const state = await temporaryFolder()
  const args = ['short-connections', ...once, '--rounds=1000', '--idle=100']
  const load = await runLoad({ state, args, until: /^Round 1\/1000/ })
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  expect(load.output.at(-1)).toBe(
    'Interrupted. Everything that this command started has been stopped.',
  )
  await expectNothingLeft(state)
})

test('reports a Redis that was killed', async () => {
  const state = await temporaryFolder()
  const args = ['commands', '--sets=info', ...once, '--rounds=1000', '--idle=0']
  const load = await runLoad({ state, args, until: /^Round 1\/1000/ })
  const own = await processesOf(state)
  const names = await Promise.all(own.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8')))
  process.kill(own[names.indexOf('redis-server\n')] ?? Number.NaN, 'SIGKILL')
  expect(await load.exited).toEqual({ code: 1, signal: null })
  expect(load.output.join('\n')).toContain('Redis (patched) exited unexpectedly (SIGKILL)')
  expect(await processesOf(state)).toEqual([])
})

test('when it is killed, its programs end', async () => {
  const state = await temporaryFolder()
  // One Redis is paused meanwhile.
  const args = [
    'short-connections',
    '--quick',
    '--builds=patched',
    '--idle=100,200',
    '--rounds=1000',
  ]
  const load = await runLoad({ state, args, until: /^Round 1\b/ })
  expect((await processesOf(state)).length).toBeGreaterThan(1)
  load.signal('SIGKILL')
  await expect.poll(() => processesOf(state)).toEqual([])
})
