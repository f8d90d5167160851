import { describe, expect, test, vi } from 'vitest'
import * as paced from '../../src/drivers/http/paced.ts'
import { highestRate, searchRate } from '../../src/experiments/latency/search.ts'

vi.mock(import('../../src/drivers/http/paced.ts'), { spy: true })

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

/** The figures of a search, if requests beyond 1,500 a second fail. */
async function search(failing: boolean) {
  vi.mocked(paced.runPaced).mockImplementation(async (_generator, _api, { schedule }) => {
    const [due, failed] = [schedule.length, failing || schedule.length > 1_500 ? 5 : 0]
    const errors = { 503: failed }
    const run = { due, ok: due - failed, errors, percentile: () => 3, max: 4, doubts: [] }
    return { ...run, cost: { foreignCpuSeconds: 0 } } as never
  })
  return await searchRate({} as never, {} as never, {
    start: 1_000,
    limit: 'p50<10',
    duration: 1,
    signal: new AbortController().signal,
    note: () => {},
  })
}

test('finds the limit of a service that refuses higher rates', async () => {
  const { values, errors } = await search(false)
  expect(values.highestRate).toBeGreaterThan(1_400)
  expect(values.highestRate).toBeLessThanOrEqual(1_500)
  expect(values.latency).toBe(3)
  expect(errors).toEqual({})
})

test('a rate at which requests fail does not hold, and errors has the failures', async () => {
  expect(await search(true)).toMatchObject({ values: { highestRate: null }, errors: { 503: 5 } })
})
