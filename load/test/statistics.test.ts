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

test("the width of an interval follows Student's t", () => {
  // The logarithms -1 and 1 in turn have a mean of 0. The expected widths are from tables of the distribution.
  const widths = [2, 6, 10, 30].map((rounds) => {
    const ratios = Array.from({ length: rounds }, (_, index) => Math.exp(index % 2 ? 1 : -1))
    const { interval } = summarizeRatios(ratios)
    const error = Math.sqrt(1 / (rounds - 1))
    return Number((Math.log(interval?.high ?? 0) / error).toFixed(3))
  })
  expect(widths).toEqual([12.706, 2.571, 2.262, 2.045])
})

describe('ratios over the rounds', () => {
  test('95 % of the intervals contain the true ratio', () => {
    const draw = noise(17)
    for (const rounds of [5, 20]) {
      const right = shareOf(4_000, () => {
        const { interval } = summarizeRatios(Array.from({ length: rounds }, draw))
        return interval !== null && interval.low <= 1 && 1 <= interval.high
      })
      expect(Math.abs(right - 0.95)).toBeLessThan(0.015)
    }
  })

  test('one round has no interval, and ratios must be positive', () => {
    expect(summarizeRatios([3])).toMatchObject({ mean: expect.closeTo(3), interval: null })
    expect(() => summarizeRatios([1, 0])).toThrow(RangeError)
  })
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
