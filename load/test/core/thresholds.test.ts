import { encoded, latencyHistogram, record } from '@onetrip/stack/measure/latencies.ts'
import { describe, expect, test } from 'vitest'
import { Rows } from '../../src/experiment/rows.ts'
import { judgeThresholds, parseThreshold } from '../../src/experiment/thresholds.ts'
import { http } from '../../src/experiments/http/http.ts'
import { latency } from '../../src/experiments/latency/latency.ts'
import { partOf } from '../../src/reporting/part.ts'
import { resultText } from '../../src/reporting/terminal.ts'
import { httpSamples, resultOf } from '../support/result.ts'

// p99 is 186.4 ms for naive and 19.5 ms for batch.
const samples = httpSamples({ naive: [3_000, 3_100, 9_000], batch: [40_000, 41_000, 42_000] })

function verdicts(text: string, all = samples) {
  const judged = judgeThresholds(Rows.of(http, all), [parseThreshold(http, text)])
  return judged.map(({ row, value, isMet }) => [row.subject, value, isMet])
}

describe('a threshold', () => {
  test.for([
    ['p99<186.4', false],
    ['p99<=186.4', true],
    ['p99>186.4', false],
    ['p99 >= 186.4', true],
    ['p99=186.4', true],
    ['p99==186.4', true],
  ] as const)('%s of 186.4: %s', ([text, isMet]) => {
    expect(verdicts(`naive:${text}`)).toEqual([['naive', 186.4, isMet]])
  })

  test('applies to the median of the rounds in all rows, or in the rows of a case', () => {
    expect(verdicts('requestsPerSecond>=3100.5')).toEqual([
      ['naive', 3_100, false],
      ['batch', 41_000, true],
    ])
    expect(verdicts('batch:requestsPerSecond>=3100.5')).toEqual([['batch', 41_000, true]])
  })

  test('errors is the number of failures of all kinds in all rounds', () => {
    const failing = httpSamples({ batch: [40_000, 41_000] }, () => ({
      errors: { 503: 2, timeout: 1 },
    }))
    expect(verdicts('errors=0', failing)).toEqual([['batch', 6, false]])
    expect(verdicts('errors=0')).toEqual([
      ['naive', 0, true],
      ['batch', 0, true],
    ])
  })

  test('is crossed by a metric without a value', () => {
    expect(verdicts('batch:p9999<1000')).toEqual([['batch', null, false]])
  })

  test('of latency applies to all rounds together, with failed requests as the slowest', () => {
    const histogram = latencyHistogram()
    record(histogram, 2, 1_990)
    const sample = {
      case: { at: '50 %', variant: 'batch' },
      histograms: { latency: encoded(histogram) },
      // A single round has too few requests for a percentile.
      values: { due: 1_000, p99: null, max: 2 },
    }
    const rows = Rows.of(latency, [
      { ...sample, round: 1 },
      { ...sample, round: 2, histograms: {} },
    ])
    const judge = (text: string) =>
      judgeThresholds(rows, [parseThreshold(latency, text)]).map(({ isMet }) => isMet)
    expect(judge('50 %:p99<3')).toEqual([true])
    expect(judge('75 %:p99<3')).toEqual([])
    expect(judge('p999<3')).toEqual([false])
  })

  test.for([
    ['p99', /is not a threshold such as 'p99<5'/],
    ['p99<', /is not a threshold/],
    ['p99<1.2.3', /is not a threshold/],
    ['p98<5', /http has no metric "p98"\. Its metrics are requestsPerSecond, p50, .*, errors\./],
  ] as const)('rejects %s', ([text, message]) => {
    expect(() => parseThreshold(http, text)).toThrow(message)
  })
})

test('reports have the crossed thresholds', () => {
  const result = resultOf(http, samples, { thresholds: ['p99<20', 'batch:errors=0'] })
  const part = partOf({ experiment: http, result })
  expect(part.notes.slice(-2)).toEqual([
    'Of 3 thresholds, 1 crossed.',
    'p99<20 is crossed by naive: 186.',
  ])
  expect(resultText(part)).toContain('1 crossed')
})
