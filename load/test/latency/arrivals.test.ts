import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arrivalTimes, secondsAt } from '../../src/drivers/pacer/arrivals.ts'

describe('arrival times', () => {
  const rates = fc.double({ min: 0.5, max: 5_000, noNaN: true })
  const durations = fc.double({ min: 0.1, max: 2, noNaN: true })
  const seeds = fc.integer({ min: 1, max: 2 ** 31 - 2 })

  test('even: evenly spaced within the run', () => {
    fc.assert(
      fc.property(rates, durations, (rate, seconds) => {
        const times = arrivalTimes({ rate, seconds, arrivals: 'even', seed: 1 })
        expect(times).toHaveLength(Math.ceil(rate * seconds))
        expect(times[0]).toBe(0)
        const apart = 1_000 / rate
        expect(times.every((time, index) => Math.abs(time - index * apart) < 1e-6)).toBe(true)
        expect(times.at(-1)).toBeLessThan(seconds * 1_000 + 1e-6) // with rounding errors
      }),
    )
  })

  test('poisson: ascending, within the run, with the given mean rate, reproducible by seed', () => {
    fc.assert(
      fc.property(rates, durations, seeds, (rate, seconds, seed) => {
        const options = { rate, seconds, arrivals: 'poisson', seed } as const
        const times = arrivalTimes(options)
        expect(times).toEqual(arrivalTimes(options))
        expect(times.every((time, index) => time > (times[index - 1] ?? 0))).toBe(true)
        expect(times.at(-1) ?? 0).toBeLessThan(seconds * 1_000)
        // Poisson: the variance is the mean.
        const mean = rate * seconds
        expect(Math.abs(times.length - mean)).toBeLessThan(6 * Math.sqrt(mean) + 6)
      }),
    )
  })

  test('poisson: the gaps have an exponential distribution', () => {
    const times = arrivalTimes({ rate: 10_000, seconds: 2, arrivals: 'poisson', seed: 17 })
    const gaps = Array.from(times, (time, index) => time - (times[index - 1] ?? 0))
    for (const share of [0.1, 0.5, 0.9, 0.99]) {
      const quantile = -Math.log(1 - share) / 10
      const below = gaps.filter((gap) => gap <= quantile).length / gaps.length
      expect(below).toBeCloseTo(share, 1)
    }
  })

  test('are at most 10 million', () => {
    const options = { rate: 1_000_000, seconds: 3_600, arrivals: 'even', seed: 1 } as const
    expect(() => arrivalTimes(options)).toThrow(/more than 10 million/)
  })
})

describe('the length of runs', () => {
  const options = { duration: 3, rounds: 5, requests: 100_000 }

  test('is sufficient for the requests in all rounds together', () => {
    const seconds = secondsAt(2_000, options)
    expect(seconds).toBe(10)
    const times = arrivalTimes({ rate: 2_000, seconds, arrivals: 'even', seed: 1 })
    expect(times.length * options.rounds).toBe(100_000)
  })

  test('is --duration if the requests need more than 20 s or less than --duration', () => {
    expect(secondsAt(500, options)).toBe(3)
    expect(secondsAt(50_000, options)).toBe(3)
    expect(secondsAt(2_000, { duration: 3, rounds: 5, requests: 0 })).toBe(3)
  })
})
