import { describe, expect, test } from 'vitest'
import { describeLink, linkNames, links } from '../src/store/links.ts'
import { conclusionsOf, documentsTable, linkTable } from '../src/store/report.ts'
import { type Contestant, referenceOf, summarizeCalls } from '../src/store/summary.ts'

describe('links', () => {
  test('those of the documents', () => {
    expect(links(linkNames.join(',')).map(describeLink)).toEqual([
      'unix: Unix socket',
      'loopback: TCP over loopback',
      'switch: 0.271 ms at 1 Gb/s',
      'vpn: 48 ms at 1.8 Mb/s',
    ])
  })

  test('any other', () => {
    const distant = { roundTripMs: 5, bitsPerSecond: 1e8 }
    expect(links('5ms@100Mb/s')).toEqual([{ name: '5ms@100Mb/s', transport: 'tcp', distant }])
  })

  test.each([
    ['', 'is none of unix, loopback, switch, vpn'],
    ['lan', 'is none of unix, loopback, switch, vpn'],
    ['unix,unix', 'only once'],
    ['5@1Gb/s', 'a time such as'],
    ['5ms@fast', 'a bandwidth such as'],
    ['5ms@1Gb/s@1', 'is none of'],
  ])('not "%s"', (text, why) => expect(() => links(text)).toThrow(why))
})

const contestant = (given: Partial<Contestant> = {}): Contestant => ({
  strategy: 'pipeline',
  poolSize: 1,
  ioThreads: 1,
  ...given,
})

const run = (callsPerSecond: number, calls = 1_000) => ({
  calls,
  allCalls: calls,
  seconds: 1,
  callsPerSecond,
  latency: { p50: 1, p99: 2, max: 3 },
  clientCpuMicros: 30,
  redisCpuMicros: 12,
  redisMainCpuMicros: 10,
})

const rounds = (one: Contestant, ...rates: number[]) =>
  rates.map((rate, index) => ({ variant: one, round: index + 1, sample: run(rate) }))

describe('summaries', () => {
  const sequential = contestant({ strategy: 'sequential' })
  const pipeline = contestant()

  test('a ratio compares two runs of the same round', () => {
    const taken = [...rounds(sequential, 100, 200, 400), ...rounds(pipeline, 300, 400, 400)]
    const [first, second] = summarizeCalls([sequential, pipeline], taken)
    expect(first).toMatchObject({ ratio: null, callsPerSecond: { median: 200 }, calls: 3_000 })
    expect(second?.ratio).toEqual({ median: 2, min: 1, max: 3 })
  })

  test('strategies are compared with sequential, pools with the first of the same strategy', () => {
    const batch = contestant({ strategy: 'batch' })
    expect(referenceOf([batch, sequential, pipeline], pipeline)).toBe(sequential)
    expect(referenceOf([batch, pipeline], pipeline)).toBe(batch)
    const more = { poolSize: 4 }
    const [big, bigBatch] = [contestant(more), contestant({ strategy: 'batch', ...more })]
    expect(referenceOf([pipeline, batch, big, bigBatch], big)).toBe(pipeline)
    expect(referenceOf([pipeline, batch, big, bigBatch], bigBatch)).toBe(batch)
  })

  test("the documents' figures stand beside ours", () => {
    const taken = [...rounds(sequential, 700, 720), ...rounds(pipeline, 2_100, 2_880)]
    const [plan] = links('switch')
    if (!plan) throw new Error('no link')
    const rows = summarizeCalls([sequential, pipeline], taken)
    const results = [{ plan, pingMs: [0.2714], rows }]
    expect(documentsTable(results)?.rows).toEqual([
      ['switch', '0.271 ms', '710', '2,490', '3.50 (3.00-4.00)', '739', '2,841', '3.8'],
    ])
    expect(conclusionsOf(results, true).join()).toContain(
      'switch: 3.50 (3.00 to 4.00 round by round) times as many calls in a pipeline; the documents: 3.8.',
    )
    expect(conclusionsOf(results, false)).toEqual([])
  })

  test('there is nothing to compare with the documents on another link, or with several pools', () => {
    const [plan] = links('5ms@100Mb/s')
    const [vpn] = links('vpn')
    if (!plan || !vpn) throw new Error('no link')
    const taken = [...rounds(sequential, 1), ...rounds(pipeline, 1)]
    const rows = summarizeCalls([sequential, pipeline], taken)
    expect(documentsTable([{ plan, pingMs: [5], rows }])).toBeUndefined()
    const more = contestant({ poolSize: 2 })
    const all = [sequential, pipeline, more]
    const several = summarizeCalls(all, [...taken, ...rounds(more, 2)])
    expect(documentsTable([{ plan: vpn, pingMs: [48], rows: several }])).toBeUndefined()
    expect(conclusionsOf([{ plan: vpn, pingMs: [48], rows: several }], true).join()).toContain(
      'vpn, pipeline: the most calls with pool of 2, I/O threads: 1: 2.00 times the first row.',
    )
  })

  test('CPU time is shown only where there were calls enough', () => {
    const [plan] = links('vpn')
    if (!plan) throw new Error('no link')
    const taken = [{ variant: pipeline, round: 1, sample: run(18, 18) }]
    const result = { plan, pingMs: [48], rows: summarizeCalls([pipeline], taken) }
    expect(linkTable(result).rows).toEqual([
      ['pipeline', '18.0', '1', '1.00', '2.00', '-', '-', '-'],
    ])
    expect(conclusionsOf([result], true)).toEqual([expect.stringContaining('fewer than 500 calls')])
  })
})
