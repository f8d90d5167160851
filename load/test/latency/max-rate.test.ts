import { describe, expect, test } from 'vitest'
import { highestRate } from '../../src/experiments/latency/search.ts'

describe('the search', () => {
  const options = { start: 1_000, precision: 1.05, runs: 30 }

  test.for([1, 1_000, 1_001, 90_000])('finds a limit of %i', async (limit) => {
    const tried: number[] = []
    const { rate, runs, isPrecise } = await highestRate(async (rate) => {
      tried.push(rate)
      return rate <= limit
    }, options)
    expect(rate).toBeLessThanOrEqual(limit)
    expect(limit / (rate ?? 0)).toBeLessThan(limit < 20 ? 1.5 : 1.06)
    expect([runs, isPrecise]).toEqual([tried.length, true])
    expect(runs).toBeLessThanOrEqual(30)
  })

  test('a single failure does not reject a rate', async () => {
    let runs = 0
    const disturbed = async (rate: number) => ++runs !== 2 && rate <= 5_500
    expect((await highestRate(disturbed, options)).rate).toBeGreaterThan(5_200)
  })

  test('ends after the maximum number of runs, and reports that it is not precise', async () => {
    const found = await highestRate(async () => true, { ...options, runs: 3 })
    expect(found).toEqual({ rate: 4_000, runs: 3, isPrecise: false })
  })
})
