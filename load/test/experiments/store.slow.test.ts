import { expect, test } from 'vitest'
import { allStrategies } from '../../src/compared-strategies.ts'
import { runExperiment } from '../support/experiment.ts'

test('measures all strategies over several links, and shows the articles', async () => {
  const { text, result } = await runExperiment('store', [
    '--quick',
    '--links=loopback,switch,20ms@1Gb/s',
    '--wide',
  ])
  expect(text).toMatch(/^switch +pipeline .* 2,841 /m)
  expect(result.samples).toHaveLength(3 * allStrategies.length)
  for (const { case: one, values } of result.samples) {
    // A call takes at least a round trip of its link; timers may fire early.
    const least = { loopback: 0, switch: 0.1, '20ms@1Gb/s': 19 }[String(one.link)]
    expect(values.p50).toBeGreaterThan(least ?? Number.NaN)
    expect(values.pingMs).toBeGreaterThan(least ?? Number.NaN)
    const isSlow = (values.callsPerSecond ?? 0) < 100
    expect(values.cpuMicros === null).toBe(isSlow)
  }
})

test('measures recordView with pools, I/O threads and several calls in flight', async () => {
  const { text, result } = await runExperiment('store', [
    '--quick',
    '--operation=record-view',
    '--strategies=batch',
    '--links=unix',
    '--concurrency=8',
    '--pool-sizes=1,2',
    '--io-threads=1,2',
    '--processes=fresh',
  ])
  expect(text).toMatch(/^batch(?: †)? +2 +2 +[\d.]+ +[\d,]+/m)
  expect(text).not.toContain('articles calls/s')
  const settings = result.samples.map(({ case: one }) => `${one.poolSize} ${one.ioThreads}`)
  expect(settings).toEqual(['1 1', '2 1', '1 2', '2 2'])
})
