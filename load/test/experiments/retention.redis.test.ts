import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

test.each(['documents', 'partitioned'])(
  'it trims to the limit, in the key layout %s, and measures what blocked Redis',
  async (layout) => {
    const { text, result } = await runExperiment('retention', [
      ...['--quick', '--sessions=3000', '--batch-sizes=100,500', '--layout', layout],
    ])
    expect(text).toMatch(/^The janitor \(batches of 100\) ended 3,001 sessions in /m)
    const cleanUps = result.samples.map(({ case: one }) => one.cleanUp)
    const janitors = ['janitor (batches of 100)', 'janitor (batches of 500)']
    expect(cleanUps).toEqual(['none', ...janitors, 'one ZREMRANGEBYRANK', 'sweep afterwards'])
    const [none, ...removed] = result.samples.map(({ values }) => values.removed)
    expect(none).toBeNull()
    // The victim's session counts towards the limit, too; a part of the list may have fewer than its share.
    const atOnce = layout === 'documents' ? 3_000 : expect.any(Number)
    expect(removed).toEqual([3_001, 3_001, atOnce, atOnce])
    for (const { values } of result.samples) {
      expect(values.max).toBeGreaterThanOrEqual(values.p50 ?? Number.NaN)
      expect(values.seconds).toBeGreaterThan(0)
    }
  },
)
