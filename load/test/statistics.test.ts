import { expect, test } from 'vitest'
import { median, pairwiseRatios, summarize } from '../src/statistics.ts'

test('the median is the middle, or halfway between the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([9, 1, 5, 7])).toBe(6)
  expect(median([3])).toBe(3)
})

test('sorting is by size, not by spelling', () => {
  expect(median([100, 9, 20])).toBe(20)
})

test('nothing has no median', () => {
  expect(() => median([])).toThrow(RangeError)
})

test('a summary has the range beside the median and leaves the samples as they are', () => {
  const samples = [5, 1, 3]
  expect(summarize(samples)).toEqual({ median: 3, min: 1, max: 5 })
  expect(samples).toEqual([5, 1, 3])
})

test('ratios are taken within a round, not between medians', () => {
  // The machine slowed down by half in the second round; the ratio did not change.
  expect(pairwiseRatios([80, 40], [10, 5])).toEqual([8, 8])
})

test('a round without a base has no ratio', () => {
  expect(pairwiseRatios([80, 40], [0, 5])).toEqual([8])
  expect(() => pairwiseRatios([1], [])).toThrow(RangeError)
})
