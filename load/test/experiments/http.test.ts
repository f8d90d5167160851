import { expect, test } from 'vitest'
import { http } from '../../src/experiments/http/http.ts'
import { partOf } from '../../src/reporting/part.ts'
import type { Sample } from '../../src/rounds/result.ts'
import type { Case } from '../../src/rounds/shape.ts'
import { httpSamples, resultOf } from '../support/result.ts'

/** Samples of two rounds under these conditions. @param factor of batch, compared with naive. */
const samplesAt = (conditions: Case, factor: number, more: Partial<Sample> = {}) =>
  httpSamples({ naive: [100, 200], batch: [100 * factor, 200 * factor] }, (variant) => ({
    ...more,
    case: { ...conditions, variant },
  }))

function tablesOf(samples: readonly Sample[]) {
  const { sections } = partOf({ experiment: http, result: resultOf(http, samples) })
  return sections.flatMap(({ title, table }) => (title === 'Throughput' ? table : []))
}

const oneCaller = samplesAt({ link: 'loopback', connections: 1 }, 2)
const manyCallers = samplesAt({ link: 'loopback', connections: 64 }, 11)

test('one table has the ratios under all conditions, each to the baseline under the same', () => {
  const cpu = { values: { apiCpuMicros: 999, redisCpuMicros: 999 } }
  const tables = tablesOf([
    ...oneCaller,
    ...manyCallers,
    ...samplesAt({ link: '1ms@1Gb/s', connections: 1 }, 5, cpu),
    ...samplesAt({ link: '1ms@1Gb/s', connections: 64 }, 9, { ...cpu, doubts: ['generator'] }),
  ])
  expect(tables[0]).toEqual({
    caption: 'Requests/s compared with naive; CPU time with 64 callers',
    head: [
      'variant',
      '× naive with one caller (range)',
      '× naive with 64 callers (range)',
      '× naive with one caller at 1 ms (range)',
      '× naive with 64 callers at 1 ms (range)',
      'API CPU µs /request (range)',
      'Redis CPU µs /request (range)',
    ],
    rows: [
      ['naive', '1', '1', '1', '1 *', '390', '282'],
      ['batch', '2.00', '11.0', '5.00', '- *', '61.2', '18.3'],
    ],
    texts: [0],
  })
  expect(tables.slice(1).map(({ caption, rows }) => [caption, rows[1]?.[2]])).toEqual([
    ['All variants, one caller, per request that reached the API', '2.00'],
    ['All variants, 64 callers, per request that reached the API', '11.0'],
    ['All variants, one caller at 1 ms, per request that reached the API', '5.00'],
    ['All variants, 64 callers at 1 ms, per request that reached the API', '-'],
  ])
})

test('ends with a sentence that compares batch with naive, also where the CPU time is unknown', () => {
  const conclusionOf = (samples: readonly Sample[]) =>
    partOf({ experiment: http, result: resultOf(http, samples) }).conclusion
  const rate = 'On this machine, batch answered 11.0 times as many requests per second as naive'
  expect(conclusionOf(manyCallers)).toBe(
    `${rate}, which opens a connection to Redis for each request and so takes 6.37 times the CPU time of the API and 15.4 times that of Redis.`,
  )
  const unknown = manyCallers.map((sample) => ({
    ...sample,
    values: { requestsPerSecond: sample.values.requestsPerSecond ?? 0 },
  }))
  expect(conclusionOf(unknown)).toBe(`${rate}.`)
  expect(conclusionOf(manyCallers.filter((sample) => sample.case.variant === 'naive'))).toBeNull()
})
