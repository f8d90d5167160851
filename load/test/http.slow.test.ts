import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { cleanEnv } from '@onetrip/stack/testing/programs.ts'
import { describe, expect, test } from 'vitest'
import { runExperiment } from './support/experiment.ts'
import { expectNothingLeft, loadPath, runLoad } from './support/run.ts'

const few = ['--connections=8', '--sessions=16']
const short = ['--rounds=1', '--duration=1', '--warmup=0', '--reads=0', ...few]

describe('npm run load', () => {
  test('starts its own stack, measures variants and contenders, and stops the stack', async () => {
    const variants = ['naive', 'pipeline', 'bare', 'glide']
    const env = { REDIS_POOL_SIZE: '2', REDIS_IO_THREADS: '2' }
    const { text, result } = await runExperiment(
      'http',
      [...short, `--variants=${variants}`, '--wide'],
      env,
    )
    // Views at the ends of the measurement may count in part: on a busy machine, several of a few.
    expect(text).toMatch(/^naive .* (0\.9\d|1\.0\d) .* (4\.[5-9]\d|5\.[0-4]\d) /m)
    expect(text).toMatch(/^pipeline .* 0\.00 .* (0\.9\d|1\.0\d) /m)
    expect(text).toMatch(/@valkey\/valkey-glide [\d.]+ \(glide\)/)
    expect(result).toMatchObject({
      interrupted: false,
      options: { connections: [8], sessions: 16, reads: 0, seed: 17, variants },
      load: { 'pool size': 2, "Redis's I/O threads": 2 },
      software: {
        Stack: 'started for this',
        Redis: expect.stringMatching(/^8\.0\.\d+ patched-/),
        Generator: expect.stringMatching(/^autocannon [\d.]+$/),
      },
      machine: { node: process.version },
    })
    for (const { errors, values } of result.samples) {
      expect(errors).toBeUndefined()
      expect(values.requestsPerSecond).toBeGreaterThan(0)
      expect(values.apiCpuMicros).toBeGreaterThan(0)
      expect(values.p75).toBeGreaterThanOrEqual(values.p50 ?? Number.NaN)
    }
    const metric = (name: string) => result.samples.map(({ values }) => values[name])
    const close = (value: number) => expect.closeTo(value, value === 0 ? 1 : 0)
    expect(metric('connections')).toEqual([close(1), 0, close(0), close(0)])
    expect(metric('roundTrips')).toEqual([close(5), close(1), close(0), close(1)])
    const [naive, ...others] = metric('commands')
    expect(naive).toBeGreaterThan(5) // commands on connecting count
    expect(others).toEqual([close(5), close(0), close(5)])
  })

  test('an interrupt keeps the complete rounds', async () => {
    const state = await temporaryFolder()
    const json = join(await temporaryFolder(), 'result.json')
    const runs = ['--rounds=99', '--duration=0.5', '--warmup=0', '--variants=batch,pipeline']
    const args = [...runs, ...few, '--json', json]
    const load = await runLoad({ state, args, until: /^Round 2\// })
    load.signal('SIGINT')
    load.signal('SIGINT')
    expect(await load.exited).toEqual({ code: 130, signal: null })
    const { interrupted, samples, options } = JSON.parse(await readFile(json, 'utf8'))
    const [first, second] = samples
    expect([interrupted, options.rounds, first.round, second.round]).toEqual([true, 99, 1, 1])
    expect(samples.length % 2).toBe(0)
    expect(samples.length).toBeLessThan(20)
    expect(load.output.join('\n')).toMatch(/^Interrupted: the figures cover the complete/m)
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
})
