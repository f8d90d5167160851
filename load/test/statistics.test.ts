import { seededRandom } from '@onetrip/stack/measure/workload.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { changeBetween, summarize, summarizeRatios } from '../src/experiment/statistics.ts'

test('a summary is the middle, or halfway between the two in the middle, with the range', () => {
  const samples = [100, 9, 20]
  expect(summarize(samples)).toEqual({ median: 20, min: 9, max: 100 })
  expect(samples).toEqual([100, 9, 20])
  expect(summarize([9, 1, 5, 7])).toEqual({ median: 6, min: 1, max: 9 })
  expect(() => summarize([])).toThrow(RangeError)
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

test("an interval is as wide as Student's t says", () => {
  // Logarithms of -1 and 1 in turns: their mean is 0, the tables have the rest.
  const widths = [2, 6, 10, 30].map((rounds) => {
    const ratios = Array.from({ length: rounds }, (_, index) => Math.exp(index % 2 ? 1 : -1))
    const { interval } = summarizeRatios(ratios)
    const error = Math.sqrt(1 / (rounds - 1))
    return Number((Math.log(interval?.high ?? 0) / error).toFixed(3))
  })
  expect(widths).toEqual([12.706, 2.571, 2.262, 2.045])
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
    expect(summarizeRatios([3])).toMatchObject({ mean: expect.closeTo(3), interval: null })
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
    expect(() => changeBetween([1], [1, 2], 0.99)).toThrow('two data points')
    expect(() => changeBetween([1, 0], [1, 2], 0.99)).toThrow(RangeError)
  })
})
