import { seededRandom } from '@onetrip/stack/measure/workload.ts'
import { describe, expect, test } from 'vitest'
import { changeBetween, summarize, summarizeRatios } from '../src/experiment/statistics.ts'

test('a summary has the median and the range', () => {
  expect(summarize([100, 9, 20])).toEqual({ median: 20, min: 9, max: 100 })
  expect(summarize([9, 1, 5, 7])).toEqual({ median: 6, min: 1, max: 9 })
  expect(() => summarize([])).toThrow(RangeError)
})

/** Log-normal values with a median of 1 and a standard deviation of 0.1 of their logarithms. */
function noise(seed: number): () => number {
  const random = seededRandom(seed)
  return () => {
    const distance = Math.sqrt(-2 * Math.log(1 - random()))
    return Math.exp(0.1 * distance * Math.cos(2 * Math.PI * random()))
  }
}

/** The share of trials with the result true. */
function shareOf(trials: number, isSo: () => boolean): number {
  return Array.from({ length: trials }, isSo).filter(Boolean).length / trials
}

test('a ratio over the rounds has the geometric mean and the range, and must be positive', () => {
  expect(summarizeRatios([1, 4])).toEqual({ mean: expect.closeTo(2), min: 1, max: 4 })
  expect(() => summarizeRatios([1, 0])).toThrow(RangeError)
})

describe('a change between two runs', () => {
  test('is a false positive in about 1 % of the cases', () => {
    const draw = noise(18)
    const rounds = () => Array.from({ length: 5 }, draw)
    const wrong = shareOf(4_000, () => {
      const { low, high } = changeBetween(rounds(), rounds(), 0.99).interval
      return low > 1 || high < 1
    })
    expect(wrong).toBeGreaterThan(0.002)
    expect(wrong).toBeLessThan(0.016)
  })

  test('is exact without variance, and needs two rounds of both runs', () => {
    const { mean, interval } = changeBetween([5, 5], [6, 6], 0.99)
    expect([interval.low, mean, interval.high]).toEqual(Array(3).fill(expect.closeTo(1.2)))
    expect(() => changeBetween([1], [1, 2], 0.99)).toThrow('two data points')
  })
})
