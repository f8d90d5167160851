import { expect, test } from 'vitest'
import { runExperiment } from '../../support/experiment.ts'

test('pipelines has a row for each command and number of values', async () => {
  const args = ['--rounds=1', '--duration=0.1', '--pipeline=10', '--values=10', '--connections=10']
  const { text, result } = await runExperiment('redis pipelines', args)
  expect(text).toMatch(/^GET .* 1 .* 70,671 /m)
  expect(result.samples.map(({ case: { command, values } }) => `${command} ${values}`)).toEqual([
    'GET 1',
    'SET 1',
    'GET 10',
    'SET 10',
    'MGET 10',
    'MSET 10',
  ])
  for (const { case: one, values, details } of result.samples) {
    expect(values.mainCpuMicros).toBeGreaterThan(0)
    expect(details?.command).toMatch(new RegExp(`^redis-benchmark .*${one.command} key:`))
  }
})
