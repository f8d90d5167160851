import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arrivalTimes, secondsAt } from '../../src/drivers/pacer/arrivals.ts'

describe('arrival times', () => {
  const rates = fc.double({ min: 0.5, max: 5_000, noNaN: true })
  const durations = fc.double({ min: 0.1, max: 2, noNaN: true })

  test('are evenly spaced within the run', () => {
    fc.assert(
      fc.property(rates, durations, (rate, seconds) => {
        const times = arrivalTimes(rate, seconds)
        expect(times).toHaveLength(Math.ceil(rate * seconds))
        expect(times[0]).toBe(0)
        const apart = 1_000 / rate
        expect(times.every((time, index) => Math.abs(time - index * apart) < 1e-6)).toBe(true)
        expect(times.at(-1)).toBeLessThan(seconds * 1_000 + 1e-6) // with rounding errors
      }),
    )
  })

  test('are at most 10 million', () => {
    expect(() => arrivalTimes(1_000_000, 3_600)).toThrow(/more than 10 million/)
  })
})

describe('the length of runs', () => {
  const options = { duration: 3, rounds: 5, requests: 100_000 }

  test('is --duration if the requests need more than 20 s or less than --duration', () => {
    expect(secondsAt(500, options)).toBe(3)
    expect(secondsAt(50_000, options)).toBe(3)
    expect(secondsAt(2_000, { duration: 3, rounds: 5, requests: 0 })).toBe(3)
  })
})
