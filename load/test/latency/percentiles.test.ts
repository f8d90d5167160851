import {
  encoded,
  latencyAt,
  latencyHistogram,
  record,
  summaryOf,
} from '@onetrip/stack/measure/latencies.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isLate } from '../../src/drivers/http/paced.ts'
import { latency } from '../../src/experiments/latency/latency.ts'
import { markdownOf } from '../../src/reporting/markdown.ts'
import { partOf } from '../../src/reporting/part.ts'
import type { Result, Sample } from '../../src/rounds/result.ts'
import { resultOf as anyResultOf } from '../support/result.ts'

/** A histogram of latencies in milliseconds. */
function histogramOf(entries: readonly (readonly [ms: number, count: number])[]) {
  const histogram = latencyHistogram()
  for (const [ms, count] of entries) record(histogram, ms, count)
  return histogram
}

describe('percentiles', () => {
  const FAILED = Number.POSITIVE_INFINITY

  test('count failed requests as the slowest, and need ten requests beyond them', () => {
    const latencies = fc.array(fc.double({ min: 0.01, max: 50_000, noNaN: true }), {
      maxLength: 400,
    })
    const shares = fc.constantFrom(50, 90, 99)
    fc.assert(
      fc.property(latencies, fc.nat(100), shares, (answered, failed, percent) => {
        const due = answered.length + failed
        const rank = Math.max(1, Math.ceil((due * percent) / 100))
        const at = latencyAt(histogramOf(answered.map((ms) => [ms, 1])), percent / 100, due)
        const expected = answered.toSorted((a, b) => a - b)[rank - 1]
        if (due > 0 && rank > answered.length) expect(at).toBe(FAILED)
        else if (due - rank < 10) expect(at).toBeNull()
        else
          expect(Math.abs((at ?? 0) - (expected ?? 0))).toBeLessThan(
            0.001 * (expected ?? 0) + 0.002,
          )
      }),
    )
  })

  test('are at most the maximum, which is exact', () => {
    const histogram = latencyHistogram()
    for (const micros of [3, 14_733, 16_001, 32_769]) histogram.recordValue(micros)
    const { max, p9999 } = summaryOf(histogram)
    expect([p9999, max]).toEqual([32.769, 32.769])
  })
})

interface Rounds {
  variant: string
  ms: number
  notSent?: number
}

/** Two rounds of 1,000 requests. In the second round, successful requests take twice as long. */
function samplesOf({ variant, ms, notSent = 0 }: Rounds): Sample[] {
  const count = 1_000 - notSent
  return [1, 2].map((round): Sample => {
    const took = ms * round
    return {
      case: { at: '50 %', variant },
      round,
      values: {
        rate: 1_000,
        due: 1_000,
        p50: took,
        p99: notSent > 0 ? null : took,
        max: took,
      },
      ...(notSent > 0 && { errors: { 'not sent': notSent } }),
      histograms: { latency: encoded(histogramOf([[took, count]])) },
    }
  })
}

const resultOf = (...rounds: Rounds[]): Result =>
  anyResultOf(latency, rounds.flatMap(samplesOf), { options: { arrivals: 'even' } })

describe('the report', () => {
  const markdown = (...rounds: Rounds[]) =>
    markdownOf(partOf({ experiment: latency, result: resultOf(...rounds) }))
  const naive = { variant: 'naive', ms: 4 }
  const batch = { variant: 'batch', ms: 1 }

  test('shows failed requests as failed, and makes no claim about them', () => {
    const text = markdown({ ...naive, notSent: 200 }, batch)
    expect(text).toMatch(
      /^\| naive +\| 8\.00 .*\| +failed \| +failed \| +failed \|.* not sent: 400 /m,
    )
    expect(text).not.toContain('99 % of the answers')
  })

  test.each([
    [0.9, 1, false],
    [1.1, 2, true],
    [1.1, 40, false],
    [1.1, null, true],
  ])('late by %d ms with a p99 of %d ms is marked: %s', (late, p99, is) => {
    expect(isLate(late, p99)).toBe(is)
  })
})
