import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import type { LatencyResult } from '../../src/latency/result.ts'
import { runLoad } from '../support/run.ts'

const short = ['--connections=4', '--sessions=8', '--no-report', '--duration=0.5']

async function resultIn(json: string): Promise<LatencyResult> {
  return JSON.parse(await readFile(json, 'utf8'))
}

test('at shares of what the slowest can do: tables, a file, and nothing left', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const args = [
    ...['latency', ...short, '--rounds=1', '--warmup=0.5', '--shares=50,10'],
    ...['--variants=naive,batch', '--arrivals=poisson', '--json', json],
  ]
  const load = await runLoad({ state, args, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  const text = load.output.join('\n')
  expect(text).toMatch(/^At full speed, requests\/s: naive [\d,.]+, batch [\d,.]+\./m)
  expect(text).toMatch(/^[\d,.]+ requests\/s \(50 % of what (naive|batch) can do\)$/m)
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])

  const result = await resultIn(json)
  expect(result).toMatchObject({
    format: 'onetrip-load-latency/1',
    stack: 'own',
    interrupted: false,
    generator: expect.stringMatching(/^undici [\d.]+$/),
    options: { arrivals: 'poisson', connections: 4, variants: ['naive', 'batch'] },
    redis: { started: 'patched' },
  })
  const { capacity, rates } = result
  const slowest = capacity?.requestsPerSecond[capacity.slowest]?.median ?? 0
  expect(rates.map(({ share }) => share)).toEqual([0.1, 0.5])
  for (const { share, requestsPerSecond } of rates) {
    expect(requestsPerSecond).toBe(Math.round(slowest * (share ?? 0)))
  }
  expect(result.samples).toHaveLength(4)
  expect(result.summaries).toHaveLength(4)
  for (const row of result.summaries) {
    const failed = Object.values(row.errors).reduce((sum, count) => sum + count, 0)
    expect(row.ok + row.notSent + failed).toBe(row.due)
    expect(row.ok).toBeGreaterThan(0)
    expect(row.latency.max).toBeGreaterThan(0)
    expect(row.perRequest.apiCpuMicros.median).toBeGreaterThan(0)
  }
})

test('at rates that are given; an interrupt keeps the rounds that are complete', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const args = [
    ...['latency', ...short, '--rounds=1000', '--warmup=0', '--rate=40,20'],
    ...['--variants=pipeline', '--json', json],
  ]
  const load = await runLoad({ state, args, until: /^Round 2\// })
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  const result = await resultIn(json)
  expect(result).toMatchObject({ interrupted: true, capacity: null })
  expect(result.rates).toEqual([
    { share: null, requestsPerSecond: 20 },
    { share: null, requestsPerSecond: 40 },
  ])
  const [slow, fast] = result.samples
  expect([slow?.due, fast?.due]).toEqual([10, 20])
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
})

test('again, compared with a file: at the same rates, and with the same load only', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'first.json')
  const few = [...short, '--rounds=2', '--warmup=0', '--variants=batch']
  const args = ['latency', ...few, '--rate=20', '--requests=30', '--json', json]
  const first = await runLoad({ state, args, until: /All samples are in/ })
  expect(await first.exited).toEqual({ code: 0, signal: null })
  expect((await resultIn(json)).samples.map(({ due }) => due)).toEqual([15, 15])

  const compared = ['--compare', json, '--threshold=1000']
  const again = await runLoad({
    state,
    args: ['latency', ...few, ...compared],
    until: /^ *$/,
  })
  await again.exited
  const text = again.output.join('\n')
  expect(text).toMatch(/^latency, compared with .*first\.json/m)
  expect(text).toMatch(/^20\.0 requests\/s, batch +/m)

  const other = ['latency', ...few, '--seed=18', ...compared]
  const refused = await runLoad({ state, args: other, until: /another load/ })
  expect(await refused.exited).toEqual({ code: 1, signal: null })
})

test('more requests than memory holds are refused before anything is started', async () => {
  const state = await temporaryFolder()
  const args = ['latency', '--rate=1000000', '--duration=3600', '--no-report']
  const load = await runLoad({ state, args, until: /more than 10 million/ })
  expect(await load.exited).toEqual({ code: 1, signal: null })
  expect(load.output).toHaveLength(1)
  expect(await filesIn(state)).toEqual([])
})
