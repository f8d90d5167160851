import { processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import type { Run } from '../../src/redis/experiments/pipelining-summary.ts'
import { runExperiment } from '../support/experiment.ts'
import { runLoad } from '../support/run.ts'

test('pipelining: one read from the socket for a whole pipeline', async () => {
  const args = ['--rounds=1', '--duration=0.1', '--pipelines=10', '--keys=10', '--clients=10']
  const { text, result } = await runExperiment<Run & { work: string }>('pipelining', args)
  expect(text).toMatch(/^GET -P 10 .* 0\.10 /m)
  expect(text).toMatch(/SET -P 10 does [\d.]+ times as many commands per second as -P 1/)
  expect(text).toContain('826,446 commands/s')
  const names = ['GET -P 1', 'SET -P 1', 'GET -P 10', 'SET -P 10', 'MGET of 10', 'MSET of 10']
  expect(result.samples.map(({ work }) => work)).toEqual(names)
  for (const sample of result.samples) {
    expect(sample.readsPerValue).toBeCloseTo(sample.work.endsWith('1') ? 1 : 0.1, 1)
    expect(sample.mainMicrosPerValue).toBeGreaterThan(0)
    expect(sample.command).toMatch(/^redis-benchmark .*(GET|SET) key:/)
  }
})

test('an interrupt ends redis-benchmark, too', async () => {
  const state = await temporaryFolder()
  const args = ['redis', 'pipelining', '--duration=60', '--pipelines=2', '--keys=10']
  const load = await runLoad({ state, args, until: /^Warm-up/ })
  load.signal('SIGINT')
  expect((await load.exited).code).toBe(130)
  expect(load.output.at(-1)).toBe('Interrupted; nothing is left running.')
  expect(await processesOf(state)).toEqual([])
})
