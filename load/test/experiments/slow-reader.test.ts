import { expect, test } from 'vitest'
import { addLevel } from '../../src/experiments/slow-reader/memory.ts'
import { sparkline } from '../../src/experiments/slow-reader/slow-reader.ts'

test('memory over time is the highest of each tenth of a second, drawn as blocks', () => {
  const levels: number[] = []
  for (const [ms, bytes] of [
    [0, 0],
    [50, 800],
    [99, 400],
    [210, 400],
    [300, -10],
  ] as const) {
    addLevel(levels, ms, bytes)
  }
  expect(levels).toEqual([800, 800, 400, 0])
  expect(sparkline(levels, 800)).toBe('██▄▁')
})
