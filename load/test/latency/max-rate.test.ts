import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { highestRate } from '../../src/experiments/max-rate/search.ts'
import { runLoad } from '../support/run.ts'

describe('the search', () => {
  const options = { start: 1_000, precision: 1.05, runs: 30 }

  test.for([1, 7, 400, 1_000, 1_001, 5_500, 90_000])('finds a limit of %i', async (limit) => {
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

  test('returns null if no rate holds', async () => {
    const found = await highestRate(async () => false, options)
    expect(found).toMatchObject({ rate: null, isPrecise: true })
  })

  test('a single failure does not reject a rate', async () => {
    let runs = 0
    const disturbed = async (rate: number) => ++runs !== 2 && rate <= 5_500
    expect((await highestRate(disturbed, options)).rate).toBeGreaterThan(5_200)
  })

  test('ends after the maximum number of runs, and reports that it is not precise', async () => {
    const found = await highestRate(async () => true, { ...options, runs: 3 })
    expect(found).toEqual({ rate: 4_000, runs: 3, isPrecise: false })
    const bisected = await highestRate(async (rate) => rate < 1_500, { ...options, runs: 4 })
    expect(bisected).toEqual({ rate: 1_414, runs: 4, isPrecise: false })
  })
})

/** Searches for the highest rate of a service with these statuses. Expects the exit code. */
async function search(status: () => number, expected: number, ...more: string[]) {
  const server = createServer((_, response) => {
    response.statusCode = status()
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const folder = await temporaryFolder()
  const json = join(folder, 'result.json')
  const url = `http://127.0.0.1:${port}/`
  const args = [
    ...['max-rate', '--url', url, '--method=GET', '--limit=p50<5000', '--from=40'],
    ...['--connections=2', '--rounds=1', '--duration=1', '--warmup=0', '--no-report', ...more],
  ]
  const load = await runLoad({ state: folder, args: [...args, '--json', json], until: /./ })
  expect(await load.exited).toEqual({ code: expected, signal: null })
  const { samples, options } = JSON.parse(await readFile(json, 'utf8'))
  return { text: load.output.join('\n'), options, sample: samples[0] }
}

test('max-rate finds the limit of a service that refuses higher rates', async () => {
  // The service accepts 60 requests per second, independent of the machine's speed.
  let [second, count] = [0, 0]
  const status = () => {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) [second, count] = [now, 0]
    return ++count > 60 ? 503 : 200
  }
  const { text, options, sample } = await search(status, 0, '--runs=8', '--threshold=errors=0')
  expect(text).toMatch(/^Round 1\/1 .* 40 requests\/s: [\d.]+ ms$/m)
  expect(text).toMatch(/ requests\/s: failed \(503: \d+\)$/m)
  expect(options.limit).toBe('p50<5000')
  expect(sample.values.highestRate).toBeGreaterThanOrEqual(40)
  expect(sample.values.highestRate).toBeLessThanOrEqual(120) // a run of 1 s, within two seconds of the clock
  expect(sample.values.runs).toBeLessThanOrEqual(8)
})

test('a rate at which requests fail does not hold, and errors has the failures', async () => {
  let count = 0
  const status = () => (++count % 4 === 0 ? 503 : 200)
  const { text, sample } = await search(status, 4, '--runs=2', '--threshold=errors=0')
  expect(sample).toMatchObject({ values: { highestRate: null, runs: 2 }, errors: { 503: 10 } })
  expect(text).not.toContain('holds up to')
})
