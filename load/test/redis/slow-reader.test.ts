import { expect, test } from 'vitest'
import { modes, UNLIMITED } from '../../src/redis/experiments/slow-reader-modes.ts'
import { type Sample, sparkline, table } from '../../src/redis/experiments/slow-reader-report.ts'

const MEGABYTE = 2 ** 20

test('memory over time as blocks, the highest of each tenth of a second', () => {
  const samples = [
    { ms: 0, bytes: 100 },
    { ms: 50, bytes: 900 },
    { ms: 99, bytes: 500 },
    { ms: 210, bytes: 500 },
    { ms: 300, bytes: 90 },
  ]
  expect(sparkline({ baseBytes: 100, samples }, 800)).toBe('██▄▁')
})

const sample = (given: Partial<Sample>): Sample => ({
  ...{ baseBytes: MEGABYTE, peakBytes: MEGABYTE, samples: [{ ms: 0, bytes: MEGABYTE }] },
  ...{ closedByOutputLimit: 0, closedByClientMemory: 0, closedAfterMs: null },
  ...{ otherWrites: { done: 10, refused: 0 }, result: { commands: 4, bytesRead: 0, refused: 0 } },
  ...given,
})

test('a row has the medians of all rounds', () => {
  const [unlimited, limited] = modes(16 * MEGABYTE)
  if (!unlimited || !limited) throw new Error('two modes at least')
  const { rows } = table(
    [unlimited, limited],
    [
      { variant: unlimited, round: 1, sample: sample({ peakBytes: 9 * MEGABYTE }) },
      {
        variant: limited,
        round: 1,
        sample: sample({
          ...{ peakBytes: 3 * MEGABYTE, closedAfterMs: 250 },
          otherWrites: { done: 10, refused: 10 },
        }),
      },
      {
        variant: limited,
        round: 2,
        sample: sample({ peakBytes: 5 * MEGABYTE, otherWrites: { done: 20, refused: 0 } }),
      },
      { variant: unlimited, round: 2, sample: sample({ peakBytes: 9 * MEGABYTE }) },
    ],
  )
  expect(rows).toEqual([
    ['not read, no limit', '8.00', '0.00', '-', '0', '▁'],
    [
      'not read, client-output-buffer-limit normal 16mb 0 0',
      ...['3.00 (2.00-4.00)', '0.00', '0.25 s', '25.0 %', '▁'],
    ],
  ])
})

test('every setting of a mode is one that the others reset', () => {
  for (const { settings } of modes(MEGABYTE)) {
    for (const name of Object.keys(settings)) expect(UNLIMITED).toHaveProperty([name])
  }
})
