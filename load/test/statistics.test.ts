import { describe, expect, test } from 'vitest'
import { changeBetween, summarize, summarizeRatios } from '../src/rounds/statistics.ts'

test('a summary has the median and the range', () => {
  expect(summarize([100, 9, 20])).toEqual({ median: 20, min: 9, max: 100 })
  expect(summarize([9, 1, 5, 7])).toEqual({ median: 6, min: 1, max: 9 })
  expect(() => summarize([])).toThrow(RangeError)
})

test('a ratio over the rounds has the geometric mean and the range, and must be positive', () => {
  expect(summarizeRatios([1, 4])).toEqual({ mean: expect.closeTo(2), min: 1, max: 4 })
  expect(() => summarizeRatios([1, 0])).toThrow(RangeError)
})

describe('a change between two runs', () => {
  test('is exact without variance, and needs two rounds of both runs', () => {
    const { mean, interval } = changeBetween([5, 5], [6, 6], 0.99)
    expect([interval.low, mean, interval.high]).toEqual(Array(3).fill(expect.closeTo(1.2)))
    expect(() => changeBetween([1], [1, 2], 0.99)).toThrow('two data points')
  })
})
