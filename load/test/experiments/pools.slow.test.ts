import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

test('pools measures each strategy with each number of connections', async () => {
  const { text, result } = await runExperiment('pools', ['--quick', '--callers=4', '--sizes=1,4'])
  expect(result.samples.map(({ case: { pool, size } }) => `${pool} ${size}`).toSorted()).toEqual([
    'batch 1',
    'batch 4',
    'pipeline 1',
    'pipeline 4',
  ])
  for (const { values } of result.samples) expect(values.callsPerSecond).toBeGreaterThan(0)
  expect(text).toMatch(/^batch( †)? +[\d,]+( †)? +[\d,]+( †)?$/m)
})
