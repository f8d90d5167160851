import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

test('retention trims to the limit and measures commands that block Redis', async () => {
  const args = ['--quick', '--sessions=3000', '--batch-sizes=100,500']
  const { result } = await runExperiment('retention', args)
  const cleanUps = result.samples.map(({ case: one }) => one.cleanUp)
  const janitors = ['janitor (batches of 100)', 'janitor (batches of 500)']
  expect(cleanUps).toEqual(['none', ...janitors, 'one ZREMRANGEBYRANK', 'sweep afterwards'])
  // The observer's session counts towards the limit, too.
  const removed = result.samples.map(({ values }) => values.removed)
  expect(removed).toEqual([undefined, 3_001, 3_001, 3_000, 3_000])
  for (const { values } of result.samples) {
    expect(values.max).toBeGreaterThanOrEqual(values.p50 ?? Number.NaN)
    expect(values.seconds).toBeGreaterThan(0)
  }
})
