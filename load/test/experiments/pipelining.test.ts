import { expect, test } from 'vitest'
import { parseCsv } from '../../src/drivers/redis/redis-benchmark.ts'
import type { Result } from '../../src/experiment/result.ts'
import { Rows } from '../../src/experiment/rows.ts'
import { commands, keyspace, sentBy } from '../../src/experiments/pipelining/commands.ts'
import { pipelining } from '../../src/experiments/pipelining/pipelining.ts'

const header =
  '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"'

test('reads what redis-benchmark prints', () => {
  const csv = `${header}\n"MGET a,b","21682.57","0.043","0.008","0.047","0.055","0.071","4.055"\n`
  expect(parseCsv(csv)).toEqual({ perSecond: 21_682.57, p50: 0.047, p99: 0.071, max: 4.055 })
  expect(() => parseCsv('')).toThrow('redis-benchmark printed no rps')
  expect(() => parseCsv(`${header}\n"GET","-nan"`)).toThrow('no rps')
})

test('a single command is always measured, since the others are compared with it', () => {
  expect(commands([100, 10], [2]).map((one) => Object.values(one).join(' '))).toEqual([
    ...['GET 1', 'SET 1', 'MGET 2', 'MSET 2', 'GET 10', 'SET 10', 'GET 100', 'SET 100'],
  ])
})

test.each([
  [
    { command: 'GET', values: 5 },
    { words: 'GET key:__rand_int__', pipeline: 5, keys: 1 },
  ],
  [
    { command: 'SET', values: 1 },
    { words: 'SET key:__rand_int__ xxx', pipeline: 1, keys: 1 },
  ],
  [
    { command: 'MSET', values: 2 },
    { words: 'MSET key:__rand_int__:0 xxx key:__rand_int__:1 xxx', pipeline: 1, keys: 2 },
  ],
])('sends %o as %o', (one, sent) => {
  const { words, ...rest } = sentBy(one)
  expect({ words: words.join(' '), ...rest }).toEqual(sent)
})

test('every key that is read is there', () => {
  const values = keyspace([2, 3])
  for (const one of commands([1], [2, 3])) {
    const [name, ...keys] = sentBy(one).words
    if (name?.endsWith('GET')) for (const key of keys) expect(values).toHaveProperty([key])
  }
})

test('each command is compared with the single one of its kind, in the same round', () => {
  const rates: [command: string, values: number, rates: number[], micros: number][] = [
    ['GET', 1, [100, 200], 8],
    ['SET', 1, [50, 50], 8],
    ['GET', 10, [700, 1_000], 1.7],
    ['SET', 10, [100, 150], 8],
    ['MGET', 10, [800, 1_800], 1],
  ]
  const samples = rates.flatMap(([command, values, list, mainCpuMicros]) =>
    list.map((valuesPerSecond, index) => ({
      ...{ case: { command, values }, round: index + 1 },
      values: { valuesPerSecond, mainCpuMicros },
      doubts: ['generator'],
    })),
  )
  const rows = Rows.of(pipelining, samples)
  const ratios = rows.all.map((row) => row.ratio('valuesPerSecond', row.baseline(rows))?.median)
  expect(ratios).toEqual([undefined, undefined, 6, 2.5, 8.5])
  const claims = pipelining.claims(rows, {} as Result)
  expect(claims[0]).toMatch(/^GET: pipelines of 10 carry 6.00 times as many values/)
  expect(claims[2]).toMatch(/^GET: a round trip .* 7.00 µs, .* each command in it 1.00 µs/)
})
