import { expect, test } from 'vitest'
import { runExperiment } from '../../support/experiment.ts'

const quick = ['--rounds=1', '--builds=patched', '--threads=2']

test('departures measures the longest wait of a client that stays', async () => {
  const args = [...quick, '--idle=10,300', '--duration=0.2']
  const { text, result } = await runExperiment('redis departures', args)
  expect(text).toMatch(/^CLIENT KILL +300 .*\d/m)
  expect(text).toMatch(/^end, of another Redis +300 .*\d/m)
  expect(result.samples).toHaveLength(6)
  for (const { values, errors } of result.samples) {
    expect(errors).toBeUndefined()
    expect(values.max).toBeGreaterThanOrEqual(values.p99 ?? Number.NaN)
    for (const name of ['mainCpuMicros', 'cpuMicros']) expect(values[name]).not.toBeNaN()
  }
})

test('storm measures how long clients wait after a pause', async () => {
  const args = [...quick, '--connections=300', '--maxclients=200', '--duration=2']
  const { result } = await runExperiment('redis storm', args)
  const [naive, pools] = result.samples.map(({ values }) => values)
  // 300 connections at once are too many here; 30 are not.
  expect(naive?.refused).toBeGreaterThan(0)
  expect(pools).toMatchObject({ refused: 0 })
  // The commands that are due during the pause wait for its end.
  for (const values of [naive, pools]) expect(values?.max).toBeGreaterThan(300)
  expect(pools?.recoveredAfter).toBeLessThanOrEqual(2)
})
