import { expect, test } from 'vitest'
import { parseCsv } from '../../src/drivers/redis/redis-benchmark.ts'
import type { Result } from '../../src/experiment/result.ts'
import { Rows } from '../../src/experiment/rows.ts'
import { pipelining } from '../../src/experiments/pipelining/pipelining.ts'

const header =
  '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"'

test('parses the CSV output of redis-benchmark', () => {
  const csv = `${header}\n"MGET a,b","21682.57","0.043","0.008","0.047","0.055","0.071","4.055"\n`
  expect(parseCsv(csv)).toEqual({ perSecond: 21_682.57, p50: 0.047, p99: 0.071, max: 4.055 })
  expect(() => parseCsv('')).toThrow('no figures')
  expect(() => parseCsv(`${header}\n"GET","-nan"`)).toThrow('no figures')
})

/** Rows of single commands and of pipelines. @param doubts of the single commands. */
function rowsOf(doubts: readonly string[]): Rows {
  const rates: [command: string, values: number, rates: number[], micros: number][] = [
    ['GET', 1, [100, 200], 8],
    ['SET', 1, [50, 50], 8],
    ['GET', 10, [700, 1_000], 1.7],
    ['SET', 10, [100, 150], 8],
    ['MGET', 10, [800, 1_800], 1],
  ]
  const samples = rates.flatMap(([command, values, list, mainCpuMicros]) =>
    list.map((valuesPerSecond, index) => ({
      case: { command, values },
      round: index + 1,
      values: { valuesPerSecond, mainCpuMicros, ceiling: 1e6 / mainCpuMicros },
      doubts: values === 1 ? doubts : [],
    })),
  )
  return Rows.of(pipelining, samples)
}

test('each command is compared with a single GET or SET in the same round', () => {
  const rows = rowsOf(['generator'])
  const ratios = rows.all.map((row) => row.ratio('valuesPerSecond', row.baseline(rows))?.mean)
  expect(ratios.map((mean) => mean?.toFixed(1))).toEqual([
    undefined,
    undefined,
    '5.9',
    '2.4',
    '8.5',
  ])
})

test('a claim has the ratio of the ceilings if the generator limited a rate', () => {
  const claims = pipelining.claims(rowsOf([]), {} as Result)
  expect(claims[0]).toMatch(/^GET: pipelines of 10 carry 5.92 times .* at a time\.$/)
  const [limited] = pipelining.claims(rowsOf(['generator']), {} as Result)
  // 8 µs and 1.7 µs per value
  expect(limited).toMatch(/^GET: pipelines of 10 carry 4\.71 times .* at a time \(the ratio of the/)
  expect(claims[1]).toMatch(/^GET: a round trip .* 7.00 µs, .* each command in it 1.00 µs/)
})
