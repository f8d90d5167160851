import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { unixUrl } from '@onetrip/stack/address.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { filesIn, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { cleanEnv } from '@onetrip/stack/testing/programs.ts'
import { testRedis } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { expectNothingLeft, loadPath, runLoad } from './support/run.ts'

const few = ['--connections=8', '--sessions=16']
const short = ['--rounds=1', '--duration=1', '--warmup=0', '--reads=0', ...few]

describe('npm run load', () => {
  test('starts its own stack, prints a table, writes a file and stops the stack', async () => {
    const state = await temporaryFolder()
    const json = join(await temporaryFolder(), 'result.json')
    const args = [...short, '--variants', 'naive,pipeline', '--json', json]
    const load = await runLoad({ state, args, until: /All samples are in/ })
    expect(await load.exited).toEqual({ code: 0, signal: null })
    const text = load.output.join('\n')
    expect(text).toMatch(/^naive .* 1\.00 .* 5\.00 /m)
    expect(text).toMatch(/^pipeline .* 0\.00 .* 1\.00 /m)
    expect(text).toMatch(
      /^(pipeline answers [\d.]+ times as many requests|There is no reliable ratio)/m,
    )
    await expectNothingLeft(state)

    const result = JSON.parse(await readFile(json, 'utf8'))
    expect(result).toMatchObject({
      format: 'onetrip-result/1',
      experiment: 'http',
      interrupted: false,
      options: {
        connections: 8,
        sessions: 16,
        reads: 0,
        seed: 17,
        variants: ['naive', 'pipeline'],
      },
      load: { 'way to Redis': 'tcp', 'pool size': 1, 'workers of each API': 1 },
      software: {
        Stack: 'started for this',
        Redis: expect.stringMatching(/^8\.0\.\d+ patched-/),
        Generator: expect.stringMatching(/^autocannon [\d.]+$/),
      },
      machine: { node: process.version },
    })
    expect(result.samples).toHaveLength(2)
    const [naive, pipeline] = result.samples
    for (const { errors, values } of [naive, pipeline]) {
      expect(errors).toBeUndefined()
      expect(values.requestsPerSecond).toBeGreaterThan(0)
      expect(values.apiCpuMicros).toBeGreaterThan(0)
      expect(values.redisCpuMicros).toBeGreaterThan(0)
      expect(values.p75).toBeGreaterThanOrEqual(values.p50)
    }
    expect(pipeline.values.connections).toBe(0)
    expect(pipeline.values.roundTrips).toBeCloseTo(1, 2)
    expect(pipeline.values.commands).toBeCloseTo(5, 2)
    expect(naive.values.connections).toBeCloseTo(1, 2)
    expect(naive.values.roundTrips).toBeCloseTo(5, 2)
    expect(naive.values.commands).toBeGreaterThan(5) // commands on connecting count
  })

  test('measures contenders with settings of the environment', async () => {
    const state = await temporaryFolder()
    const json = join(await temporaryFolder(), 'result.json')
    const variants = ['noop', 'batch', 'glide']
    const args = ['http', ...short, `--variants=${variants}`, '--json', json]
    const env = { REDIS_POOL_SIZE: '2', REDIS_IO_THREADS: '2' }
    const load = await runLoad({ state, args, until: /All samples are in/, env })
    expect(await load.exited).toEqual({ code: 0, signal: null })
    const text = load.output.join('\n')
    expect(text).toMatch(/@valkey\/valkey-glide [\d.]+ \(glide\)/)
    expect(text).toContain('; 2 I/O threads\n')
    const result = JSON.parse(await readFile(json, 'utf8'))
    expect(result).toMatchObject({
      load: { 'pool size': 2, "Redis's I/O threads": 2 },
    })
    const [noop, batch, glide] = result.samples
    for (const sample of [noop, batch, glide]) {
      expect(sample.errors).toBeUndefined()
      expect(sample.values.generatorCpuMicros).toBeGreaterThan(0)
    }
    expect(noop.values.commands).toBeCloseTo(0, 1)
    expect(batch.values.commands).toBeLessThan(5)
    expect(glide.values.commands).toBeCloseTo(5, 1)
    await expectNothingLeft(state)
  })

  test('an interrupt keeps the complete rounds', async () => {
    const state = await temporaryFolder()
    const json = join(await temporaryFolder(), 'result.json')
    const runs = [
      '--rounds=99',
      '--duration=0.5',
      '--warmup=0',
      '--variants=batch,pipeline',
      ...few,
    ]
    const args = [...runs, '--json', json]
    const load = await runLoad({ state, args, until: /^Round 2\// })
    load.signal('SIGINT')
    load.signal('SIGINT')
    expect(await load.exited).toEqual({ code: 130, signal: null })
    const { interrupted, samples, options } = JSON.parse(await readFile(json, 'utf8'))
    const [first, second] = samples
    expect([interrupted, options.rounds, first.round, second.round]).toEqual([true, 99, 1, 1])
    expect(samples.length % 2).toBe(0)
    expect(samples.length).toBeLessThan(20)
    const text = load.output.join('\n')
    expect(text).toMatch(/^Interrupted: the figures cover the complete/m)
    expect(text).toMatch(/^pipeline .*[\d,]+/m)
    expect(load.output.at(-1)).toBe(
      'Interrupted. Everything that this command started has been stopped.',
    )
    await expectNothingLeft(state)
  })

  test('ends and cleans up when its output is closed (| head)', async () => {
    const state = await temporaryFolder()
    const args = ['--duration=60', '--warmup=0.5', ...few]
    const status = join(await temporaryFolder(), 'status')
    const script = `{ "$NODE" "$CLI" ${args.join(' ')}; echo $? >"${status}"; } | head -n 3`
    const env = { ...cleanEnv(state), NODE: process.execPath, CLI: loadPath }
    const { stdout } = await promisify(execFile)('sh', ['-c', script], { env })
    expect(stdout).toContain('Page views over HTTP')
    expect(await readFile(status, 'utf8')).toBe('130\n')
    await expectNothingLeft(state)
  })

  test('rejects a path that cannot be written, before it starts programs', async () => {
    const state = await temporaryFolder()
    const args = ['--json', join(state, 'no', 'x.json')]
    const load = await runLoad({ state, args, until: /cannot be written/ })
    expect(await load.exited).toEqual({ code: 1, signal: null })
    expect(load.output).toHaveLength(1)
    expect(await filesIn(state)).toEqual([])
  })
})

test('the monitor does not count its own commands', async () => {
  const redis = await testRedis()
  const monitor = await RedisMonitor.connect(unixUrl(redis.socket))
  try {
    const before = await monitor.read()
    await monitor.facts()
    const after = await monitor.read()
    expect(after.commands - before.commands).toBe(0)
    expect(after.reads - before.reads).toBe(0)
    expect(after.connections - before.connections).toBe(0)
    const other = await RedisMonitor.connect(unixUrl(redis.socket))
    other.close()
    expect((await monitor.read()).connections - before.connections).toBe(1)
  } finally {
    monitor.close()
    await redis.stop()
  }
})
