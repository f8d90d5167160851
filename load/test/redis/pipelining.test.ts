import { expect, test } from 'vitest'
import { parseCsv } from '../../src/drivers/redis/redis-benchmark.ts'
import { type Run, summarizeRuns } from '../../src/redis/experiments/pipelining-summary.ts'
import {
  benchmarkArgs,
  keyspace,
  type Work,
  works,
} from '../../src/redis/experiments/pipelining-work.ts'

const header =
  '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"'

test('reads what redis-benchmark prints', () => {
  const csv = `${header}\n"MGET a,b","21682.57","0.043","0.008","0.047","0.055","0.071","4.055"\n`
  expect(parseCsv(csv)).toEqual({ perSecond: 21_682.57, p50: 0.047, p99: 0.071, max: 4.055 })
  expect(() => parseCsv('')).toThrow('redis-benchmark printed no rps')
  expect(() => parseCsv(`${header}\n"GET","-nan"`)).toThrow('no rps')
})

test('one command at a time is always measured, for the others are compared with it', () => {
  expect(works([10, 100], [2]).map(({ name }) => name)).toEqual([
    ...['GET -P 1', 'SET -P 1', 'GET -P 10', 'SET -P 10', 'GET -P 100', 'SET -P 100'],
    ...['MGET of 2', 'MSET of 2'],
  ])
})

test('every key that is read is there', () => {
  const values = keyspace([2, 3])
  const read = works([1], [2, 3]).filter(({ command: [name] }) => name?.endsWith('GET'))
  for (const { command } of read) {
    for (const key of command.slice(1)) expect(values).toHaveProperty([key])
  }
})

test('what comes after the command is its arguments', () => {
  const [get] = works([1], [])
  const args = benchmarkArgs(get as Work, { port: 7, clients: 50, requests: 100 })
  expect(args.join(' ')).toBe('-p 7 -c 50 -n 100 -P 1 GET key:__rand_int__')
})

const run = (given: Partial<Run>): Run => ({
  ...{ valuesPerSecond: 1, mainMicrosPerValue: 1, readsPerValue: 1, p50: 1, p99: 1 },
  ...{ redisDemand: 0.5, generatorDemand: 0.5, requests: 1, command: '' },
  ...given,
})

test('each work is compared with the single command of its kind, in the same round', () => {
  const list = works([10], [10])
  const rates: Record<string, number[]> = {
    'GET -P 1': [100, 200],
    'GET -P 10': [700, 1_000],
    'MGET of 10': [800, 1_800],
    'SET -P 1': [50, 50],
    'SET -P 10': [100, 150],
    'MSET of 10': [200, 200],
  }
  const rows = summarizeRuns(list, ({ name }) =>
    (rates[name] ?? []).map((valuesPerSecond) => run({ valuesPerSecond, mainMicrosPerValue: 4 })),
  )
  const ratios = Object.fromEntries(rows.map(({ work, ratio }) => [work.name, ratio.median]))
  expect(ratios).toEqual({
    ...{ 'GET -P 1': 1, 'GET -P 10': 6, 'MGET of 10': 8.5 },
    ...{ 'SET -P 1': 1, 'SET -P 10': 2.5, 'MSET of 10': 4 },
  })
  expect(rows[0]?.ceiling).toBe(250_000)
})

test('a row is marked when its generator was busy in one round', () => {
  const demands = (...list: (number | null)[]) =>
    summarizeRuns(works([], []), () => list.map((generatorDemand) => run({ generatorDemand })))[0]
  expect(demands(0.5, 0.96)).toMatchObject({ generatorAtLimit: true })
  expect(demands(0.5, 0.94)).toMatchObject({ generatorAtLimit: false })
  expect(demands(null, null)).toMatchObject({ generatorDemand: null, generatorAtLimit: false })
})
