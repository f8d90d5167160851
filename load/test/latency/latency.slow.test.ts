import { together } from '@onetrip/stack/measure/latencies.ts'
import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

const short = ['--connections=4', '--sessions=8', '--no-report', '--duration=0.5']

test('measures at shares of the capacity of each variant', async () => {
  const { text, result } = await runExperiment('latency', [
    ...short,
    '--rounds=1',
    '--warmup=0.5',
    '--shares=50,10',
    '--variants=naive,batch',
  ])
  expect(text).toMatch(/^At full speed, requests\/s: naive [\d,.]+, batch [\d,.]+\.$/m)
  expect(result.software).toMatchObject({
    Generator: expect.stringMatching(/^undici [\d.]+$/),
    Redis: expect.stringContaining('patched'),
  })
  const { samples } = result
  const cases = samples.map(({ case: one }) => `${one.at} ${one.variant}`)
  expect(cases).toEqual(
    [50, 10].flatMap((share) =>
      ['naive', 'batch'].map((variant) => `${share} % of its own capacity ${variant}`),
    ),
  )
  const [naive = 0, batch = 0, ...tenths] = samples.map(({ values }) => Number(values.rate))
  expect(tenths).toEqual([naive, batch].map((rate) => expect.closeTo(rate / 5, -1)))
  for (const { values, errors = {}, histograms } of samples) {
    const failed = Object.values(errors).reduce((sum, count) => sum + count, 0)
    const { totalCount } = together([histograms?.latency ?? ''])
    expect(totalCount + failed).toBe(values.due)
    expect(totalCount).toBeGreaterThan(0)
    expect(values.max).toBeGreaterThan(0)
    expect(values.apiCpuMicros).toBeGreaterThan(0)
  }
})

test('measures at given rates', async () => {
  const args = [...short, '--rounds=1', '--warmup=0', '--rate=40,20', '--variants=pipeline']
  const { result } = await runExperiment('latency', args)
  expect(result.samples).toMatchObject([
    { case: { at: '20 requests/s' }, values: { rate: 20, due: 10 } },
    { case: { at: '40 requests/s' }, values: { rate: 40, due: 20 } },
  ])
})

test('--limit searches for the highest rate', async () => {
  const quick = ['--duration=0.2', '--rounds=1', '--warmup=0']
  const args = [...short, ...quick, '--variants=naive', '--limit=p50<200']
  const { text, result } = await runExperiment('latency', args)
  expect(text).toMatch(/^Round 1\/1 .* 1,000 requests\/s: /m)
  expect(result.samples[0]?.values.highestRate).toBeGreaterThan(0)
})
