import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Variant } from '../../src/contenders.ts'
import { curveOf, figuresOf, latencyHistogram, record } from '../../src/drivers/pacer/latencies.ts'
import { conclusions, tables } from '../../src/latency/report.ts'
import type { LatencySample } from '../../src/latency/result.ts'
import type { LatencyRun } from '../../src/latency/sample.ts'
import { doubtsOf, summarizeLatencies } from '../../src/latency/summary.ts'

describe('percentiles', () => {
  test('a request that failed is slower than all others; ten must be beyond', () => {
    const latencies = fc.array(fc.double({ min: 0.01, max: 50_000, noNaN: true }), {
      maxLength: 400,
    })
    fc.assert(
      fc.property(latencies, fc.nat(100), (answered, failed) => {
        const histogram = latencyHistogram()
        for (const latency of answered) record(histogram, latency)
        const due = answered.length + failed
        const sorted = answered.toSorted((a, b) => a - b)
        const figures = figuresOf(histogram, due)
        for (const [name, share] of [
          ['p50', 50],
          ['p90', 90],
          ['p99', 99],
        ] as const) {
          const rank = Math.max(1, Math.ceil((due * share) / 100))
          const expected = due - rank < 10 ? undefined : sorted[rank - 1]
          if (expected === undefined) expect(figures[name]).toBeNull()
          else
            expect(Math.abs((figures[name] ?? 0) - expected)).toBeLessThan(0.001 * expected + 0.002)
        }
        expect(figures.max === null).toBe(answered.length === 0)
      }),
    )
  })

  test('of all rounds together p99.99 is told from 100,000 requests on, of one round not', () => {
    const histogram = latencyHistogram()
    for (let index = 1; index <= 99_989; index++) record(histogram, 1)
    for (let index = 0; index < 11; index++) record(histogram, 7)
    expect(figuresOf(histogram, 100_000).p9999).toBeCloseTo(7, 1)
    expect(figuresOf(histogram, 100_001).p9999).toBeCloseTo(7, 1)
    const round = latencyHistogram()
    for (let index = 0; index < 20_000; index++) record(round, 1)
    expect(figuresOf(round, 20_000)).toMatchObject({ p999: expect.any(Number), p9999: null })
  })

  test('a curve ends where fewer than ten requests are beyond', () => {
    const histogram = latencyHistogram()
    for (let index = 1; index <= 10_000; index++) record(histogram, index)
    const curve = curveOf(histogram, 10_000)
    expect(curve[0]?.share).toBe(0)
    expect(curve.at(-1)?.share).toBeCloseTo(0.999, 9)
    expect(curve.every(({ ms }, index) => ms >= (curve[index - 1]?.ms ?? 0))).toBe(true)
  })
})

test('a row is doubtful when the generator was late or busy', () => {
  const pacer = (p99: number, utilization = 0.5) => ({
    lateness: { p50: 0.1, p99, max: 9 },
    utilization,
  })
  expect(doubtsOf(pacer(0.9), 1)).toEqual([])
  expect(doubtsOf(pacer(1.1), 4)).toEqual(['pacer late'])
  expect(doubtsOf(pacer(1.1), 40)).toEqual([])
  expect(doubtsOf(pacer(1.1), null)).toEqual(['pacer late'])
  expect(doubtsOf(pacer(1.1), Number.POSITIVE_INFINITY)).toEqual([])
  expect(doubtsOf(pacer(0.1, 0.97), 1)).toEqual(['generator at its limit'])
})

describe('what is told', () => {
  const rates = [{ share: 0.5, requestsPerSecond: 1_000 }]
  const capacity = {
    ...{ generator: 'autocannon 9.0.0', slowest: 'naive' as const },
    requestsPerSecond: { naive: { median: 2_000, min: 1_900, max: 2_100 } },
  }

  /** Two rounds of 1,000 requests, each of which took so many milliseconds, as far as they succeeded. */
  function runsOf(variant: Variant, ms: number, notSent: number, late = 0.1): LatencyRun[] {
    return [1, 2].map((round) => {
      const [latencies, lateness] = [latencyHistogram(), latencyHistogram()]
      for (let index = notSent; index < 1_000; index++) {
        record(latencies, ms * round)
        record(lateness, late)
      }
      const ok = 1_000 - notSent
      const sample: LatencySample = {
        ...{ variant, round, rate: 1_000, due: 1_000, ok, notSent, errors: {}, seconds: 1 },
        latency: figuresOf(latencies, 1_000),
        longestLine: notSent,
        pacer: { lateness: { p50: late, p99: late, max: late }, utilization: 0.2 },
        perRequest: { generatorCpuMicros: 30, apiCpuMicros: 40, redisCpuMicros: 10 },
        elsewhere: 0.01,
      }
      return { sample, latencies, lateness }
    })
  }

  function told(runs: readonly LatencyRun[], variants: Variant[]) {
    const summaries = summarizeLatencies(runs, rates, variants)
    const result = { rates, capacity, summaries }
    return {
      summaries,
      text: stripVTControlCharacters(`${tables(result)}\n${conclusions(result)}`),
    }
  }

  test('percentiles of all rounds, with the range of the rounds', () => {
    const { summaries, text } = told(
      [...runsOf('naive', 4, 0), ...runsOf('batch', 1, 0)],
      ['naive', 'batch'],
    )
    expect(summaries[1]).toMatchObject({
      due: 2_000,
      ok: 2_000,
      notSent: 0,
      doubts: [],
      share: 0.5,
    })
    expect(text).toContain('1,000 requests/s (50 % of what naive can do)')
    expect(text).toMatch(/^batch +1\.00 +2\.00 +2\.00 +2\.00 \(1\.00-2\.00\) +- +- +2\.00 +0 /m)
    expect(text).toContain(
      '99 % of the answers take at most 2.00 ms with batch, 8.00 ms with naive.',
    )
  })

  test('what failed is no latency, and no claim is made of it', () => {
    const { summaries, text } = told(
      [...runsOf('naive', 4, 200), ...runsOf('batch', 1, 0)],
      ['naive', 'batch'],
    )
    expect(summaries[0]).toMatchObject({
      notSent: 400,
      latency: { p75: expect.closeTo(8, 1), p90: null, p99: null },
    })
    expect(text).toMatch(
      /^naive +8\.00 +8\.00 +failed +failed +failed +failed +8\.00 +not sent: 400 /m,
    )
    expect(text).not.toContain('99 % of the answers')
    expect(text).toContain('count as slower than all others')
  })

  test('a late generator is marked', () => {
    const { text } = told(
      [...runsOf('naive', 4, 0), ...runsOf('batch', 1, 0, 1.5)],
      ['naive', 'batch'],
    )
    expect(text).toMatch(/^batch \* /m)
    expect(text).toMatch(/^\* Requests were sent too late/m)
    expect(text).not.toContain('99 % of the answers')
  })
})
