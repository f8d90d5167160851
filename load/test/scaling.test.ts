import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { summarizeSamples } from '../src/http/summary.ts'
import { scalingCommand, scalingOptions } from '../src/scaling/options.ts'
import { isFar, linkText, pointsOf, secondsAt } from '../src/scaling/plan.ts'
import { conclusions, seriesTable } from '../src/scaling/report.ts'
import type { ScalingSeries } from '../src/scaling/result.ts'
import { sample } from './support/samples.ts'

const options = (...args: string[]) =>
  scalingOptions(scalingCommand().parse(args, { from: 'user' }))

describe('what is varied', () => {
  test('one thing, while the rest stays as it is', () => {
    const wanted = options()
    const settings = (by: 'connections' | 'workers' | 'distance') =>
      pointsOf(by, wanted).map(({ connections, workers, link }) => [connections, workers, link])
    expect(settings('connections')).toEqual(
      [1, 4, 16, 64, 256, 1_000].map((count) => [count, 1, 'loopback']),
    )
    expect(settings('workers')).toEqual([1, 2].map((count) => [64, count, 'loopback']))
    expect(settings('distance')).toEqual(
      ['unix', 'loopback', 'switch', '1ms@1Gb/s', 'vpn'].map((link) => [64, 1, link]),
    )
  })

  test('distance has both sides of the documents, several processes only what can have them', () => {
    const wanted = options('--variants=pipeline,noop', '--workers=1,2', '--links=unix')
    expect(pointsOf('distance', wanted)[0]?.variants).toEqual(['sequential', 'pipeline', 'noop'])
    const workers = pointsOf('workers', wanted).map(({ variants }) => variants)
    expect(workers).toEqual([['pipeline', 'noop'], ['pipeline']])
    expect(pointsOf('workers', options('--variants=noop', '--workers=2'))).toEqual([])
  })

  test('a run is long enough for an answer', () => {
    const [few, many] = pointsOf('connections', options('--connections=1000,64'))
    const [near, far] = pointsOf('distance', options('--links=switch,vpn'))
    const seconds = [few, many, near, far].map((point) => point && secondsAt(point, 1))
    expect(seconds).toEqual([1, 3, 1, 6])
    expect(far && secondsAt(far, 10)).toBe(10)
    expect([near, far].map((point) => point && isFar(point))).toEqual([false, true])
    expect(far && linkText(far)).toBe('vpn: 48 ms at 1.8 Mb/s')
  })

  test('at least a session for each connection; --quick varies less', () => {
    expect(options('--connections=1,5000').sessions).toBe(5_000)
    expect(options('--quick')).toMatchObject({ rounds: 1, connections: [1, 64, 1_000] })
    expect(options('--quick', '--connections=7')).toMatchObject({ rounds: 1, connections: [7] })
  })
})

function series(by: ScalingSeries['by'], oversubscribed: boolean): ScalingSeries {
  const samples = [1, 2].flatMap((round) => [
    sample({ variant: 'naive', round, requestsPerSecond: 100 }),
    sample({ variant: 'sequential', round, requestsPerSecond: 200 }),
    sample({ variant: 'pipeline', round, requestsPerSecond: 600 }),
  ])
  const summaries = summarizeSamples(samples, ['naive', 'sequential', 'pipeline'])
  const at = { connections: 1_000, workers: 2, link: 'vpn', linkText: 'vpn: 48 ms at 1.8 Mb/s' }
  return { by, points: [{ ...at, pingMs: 48.123, oversubscribed, summaries }], samples: [] }
}

describe('what is told', () => {
  test('a table names the point once, and what each variant does there', () => {
    const lines = seriesTable(series('distance', false)).split('\n')
    expect(lines).toContainEqual(expect.stringMatching(/^vpn +48\.1 ms +naive +100 +1 /))
    expect(lines).toContainEqual(expect.stringMatching(/^ +pipeline +600 +6\.00 /))
    expect(seriesTable(series('connections', true))).toMatch(/^1,000 ‡ +naive/m)
  })

  test('distance has a sentence for each link; too few cores are told', () => {
    const told = stripVTControlCharacters(conclusions([series('distance', true)]))
    expect(told).toContain('vpn: 3.00 times as many requests with a pipeline')
    expect(told).toMatch(/^‡ /m)
    expect(conclusions([series('connections', false)])).toBe('')
  })
})
