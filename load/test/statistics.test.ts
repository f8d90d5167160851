import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../src/drivers/http/workload.ts'
import {
  changeBetween,
  median,
  pairwiseRatios,
  studentQuantile,
  summarize,
  summarizeRatios,
} from '../src/statistics.ts'

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

/** Ratios as rounds give them: some more, some less, within a factor of ten. */
const ratios = (length: number) =>
  fc.array(fc.double({ min: 0.1, max: 10, noNaN: true }), { minLength: length, maxLength: 20 })

/** Draws that scatter around 1 by about a tenth, as logarithms normally. */
function noise(seed: number): () => number {
  const random = seededRandom(seed)
  return () => {
    const distance = Math.sqrt(-2 * Math.log(1 - random()))
    return Math.exp(0.1 * distance * Math.cos(2 * Math.PI * random()))
  }
}

/** In how many of so many trials it is so. */
function shareOf(trials: number, isSo: () => boolean): number {
  return Array.from({ length: trials }, isSo).filter(Boolean).length / trials
}

test("Student's t, as the tables have it", () => {
  const table = [1, 2, 4, 5, 9, 10, 29].map((freedom) => [
    freedom,
    Number(studentQuantile(0.975, freedom).toFixed(3)),
    Number(studentQuantile(0.995, freedom).toFixed(3)),
  ])
  expect(table).toEqual([
    [1, 12.706, 63.657],
    [2, 4.303, 9.925],
    [4, 2.776, 4.604],
    [5, 2.571, 4.032],
    [9, 2.262, 3.25],
    [10, 2.228, 3.169],
    [29, 2.045, 2.756],
  ])
})

describe('ratios over the rounds', () => {
  test('the mean is in its interval and in the range', () => {
    fc.assert(
      fc.property(ratios(2), (values) => {
        const { mean, interval, min, max } = summarizeRatios(values)
        expect(mean).toBeGreaterThanOrEqual(min * (1 - 1e-9))
        expect(mean).toBeLessThanOrEqual(max * (1 + 1e-9))
        expect(interval?.low).toBeLessThanOrEqual(mean)
        expect(interval?.high).toBeGreaterThanOrEqual(mean)
      }),
    )
  })

  test('turned round, they are the same statement turned round', () => {
    fc.assert(
      fc.property(ratios(2), (values) => {
        const one = summarizeRatios(values)
        const other = summarizeRatios(values.map((value) => 1 / value))
        expect(other.mean * one.mean).toBeCloseTo(1, 9)
        expect((other.interval?.low ?? 0) * (one.interval?.high ?? 0)).toBeCloseTo(1, 9)
      }),
    )
  })

  test('their order is of no importance, and a common factor comes out', () => {
    fc.assert(
      fc.property(ratios(2), fc.double({ min: 0.5, max: 2, noNaN: true }), (values, factor) => {
        const one = summarizeRatios(values)
        const other = summarizeRatios(values.toReversed().map((value) => value * factor))
        expect(other.mean / one.mean).toBeCloseTo(factor, 9)
        expect((other.interval?.high ?? 0) / (one.interval?.high ?? 1)).toBeCloseTo(factor, 9)
      }),
    )
  })

  test('of many comparisons, 95 in 100 intervals have what is true', () => {
    const draw = noise(17)
    for (const rounds of [5, 20]) {
      const right = shareOf(4_000, () => {
        const { interval } = summarizeRatios(Array.from({ length: rounds }, draw))
        return interval !== null && interval.low <= 1 && 1 <= interval.high
      })
      expect(Math.abs(right - 0.95)).toBeLessThan(0.015)
    }
  })

  test('one round has no interval, none has nothing', () => {
    expect(summarizeRatios([3])).toMatchObject({ median: 3, interval: null })
    expect(() => summarizeRatios([])).toThrow(RangeError)
    expect(() => summarizeRatios([1, 0])).toThrow(RangeError)
  })
})

describe('a change between two runs', () => {
  test('of nothing is none, whichever way round', () => {
    fc.assert(
      fc.property(ratios(2), ratios(2), (before, after) => {
        const there = changeBetween(before, after, 0.99)
        const back = changeBetween(after, before, 0.99)
        expect(there.mean * back.mean).toBeCloseTo(1, 9)
        expect(there.interval.low * back.interval.high).toBeCloseTo(1, 6)
        expect(changeBetween(before, before, 0.99).mean).toBeCloseTo(1, 9)
      }),
    )
  })

  test('more confidence needs a wider interval', () => {
    const [before, after] = [
      [1, 1.1, 0.9],
      [1.3, 1.2, 1.35, 1.4],
    ]
    const usual = changeBetween(before, after, 0.95)
    const sure = changeBetween(before, after, 0.99)
    expect(sure.interval.low).toBeLessThan(usual.interval.low)
    expect(sure.interval.high).toBeGreaterThan(usual.interval.high)
    expect(usual.interval.low).toBeGreaterThan(1)
  })

  test('without any scatter it is exact', () => {
    const { mean, interval } = changeBetween([5, 5], [6, 6], 0.99)
    expect([mean, interval.low, interval.high].map((x) => x.toFixed(9))).toEqual(
      Array(3).fill('1.200000000'),
    )
  })

  test('where nothing changed, about 1 in 100 says that something did', () => {
    const draw = noise(18)
    const rounds = () => Array.from({ length: 5 }, draw)
    const wrong = shareOf(4_000, () => {
      const { low, high } = changeBetween(rounds(), rounds(), 0.99).interval
      return low > 1 || high < 1
    })
    expect(wrong).toBeGreaterThan(0.002)
    expect(wrong).toBeLessThan(0.016)
  })

  test('needs two rounds of both', () => {
    expect(() => changeBetween([1], [1, 2], 0.99)).toThrow(RangeError)
    expect(() => changeBetween([1, 0], [1, 2], 0.99)).toThrow(RangeError)
  })
})
