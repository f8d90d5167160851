import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { together } from '@onetrip/stack/measure/latencies.ts'
import { filesIn, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import type { Result } from '../../src/experiment/result.ts'
import { runExperiment } from '../support/experiment.ts'
import { expectNothingLeft, runLoad } from '../support/run.ts'

const short = ['--connections=4', '--sessions=8', '--no-report', '--duration=0.5']

test('measures at shares of the capacity of the slowest variant', async () => {
  const { text, result } = await runExperiment('latency', [
    ...short,
    '--rounds=1',
    '--warmup=0.5',
    '--shares=50,10',
    '--variants=naive,batch',
  ])
  expect(text).toMatch(/^At full speed, requests\/s: naive [\d,.]+, batch [\d,.]+\./m)
  expect(text).toMatch(
    /^Latency at [\d,]+ requests\/s \(50 % of the capacity of the slowest variant\) in ms, from when/m,
  )
  expect(result.software).toMatchObject({
    Generator: expect.stringMatching(/^undici [\d.]+$/),
    Redis: expect.stringContaining('patched'),
  })
  const { samples } = result
  const cases = samples.map(({ case: one }) => `${one.at} ${one.variant}`)
  expect(cases).toEqual(['10 % naive', '10 % batch', '50 % naive', '50 % batch'])
  const rateAt = (at: string) => samples.find(({ case: one }) => one.at === at)?.values.rate
  expect(rateAt('50 %')).toBeCloseTo(5 * Number(rateAt('10 %')), -1)
  for (const { values, errors = {}, histograms } of samples) {
    const failed = Object.values(errors).reduce((sum, count) => sum + count, 0)
    const { totalCount } = together([histograms?.latency ?? ''])
    expect(totalCount + failed).toBe(values.due)
    expect(totalCount).toBeGreaterThan(0)
    expect(values.max).toBeGreaterThan(0)
    expect(values.apiCpuMicros).toBeGreaterThan(0)
  }
})

test('measures at given rates, and keeps the complete rounds after an interrupt', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const args = [
    'latency',
    ...short,
    '--rounds=1000',
    '--warmup=0',
    '--rate=40,20',
    '--variants=pipeline',
    '--json',
    json,
  ]
  const load = await runLoad({ state, args, until: /^Round 2\// })
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  const result: Result = JSON.parse(await readFile(json, 'utf8'))
  expect(result).toMatchObject({ interrupted: true })
  const [slow, fast] = result.samples
  expect(slow).toMatchObject({
    case: { at: '20 requests/s' },
    values: { rate: 20, due: 10 },
  })
  expect(fast).toMatchObject({ case: { at: '40 requests/s' }, values: { rate: 40, due: 20 } })
  await expectNothingLeft(state)
})

test('--limit searches for the highest rate', async () => {
  const args = [...short, '--rounds=1', '--warmup=0', '--variants=naive', '--limit=p50<1000']
  const { text, result } = await runExperiment('latency', args)
  expect(text).toMatch(/^Round 1\/1 .* 1,000 requests\/s: /m)
  expect(result.samples[0]?.values.highestRate).toBeGreaterThan(0)
})

test('rejects more than 10 million requests before it starts programs', async () => {
  const state = await temporaryFolder()
  const args = ['latency', '--rate=1000000', '--duration=3600', '--no-report']
  const load = await runLoad({ state, args, until: /more than 10 million/ })
  expect(await load.exited).toEqual({ code: 1, signal: null })
  expect(load.output.join('\n')).not.toContain('starting a stack')
  expect(await filesIn(state)).toEqual([])
})
