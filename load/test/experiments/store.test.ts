import { describe, expect, test } from 'vitest'
import { linkNames, links } from '../../src/drivers/redis/links.ts'
import type { Result, Sample } from '../../src/experiment/result.ts'
import { Rows } from '../../src/experiment/rows.ts'
import { store } from '../../src/experiments/store/store.ts'

describe('links', () => {
  test('have names for those of the source articles', () => {
    expect(links(linkNames.join(',')).map(({ distant }) => distant)).toEqual([
      null,
      null,
      { roundTripMs: 0.271, rate: '1Gb/s' },
      { roundTripMs: 48, rate: '1.8Mb/s' },
    ])
  })

  test('can have any round trip time and bandwidth', () => {
    const distant = { roundTripMs: 5, rate: '100Mb/s' }
    expect(links('5ms@100Mb/s')).toEqual([{ name: '5ms@100Mb/s', distant }])
  })

  test.each([
    ['', 'is none of unix, loopback, switch, vpn'],
    ['lan', 'is none of unix, loopback, switch, vpn'],
    ['unix,unix', 'only once'],
    ['5@1Gb/s', 'a time such as'],
    ['5ms@fast', 'a bandwidth such as'],
    ['5ms@1Gb/s@1', 'is none of'],
  ])('rejects "%s"', (text, why) => expect(() => links(text)).toThrow(why))
})

const setting = { link: 'switch', poolSize: 1, ioThreads: 1 }
const cpu = { clientCpuMicros: 30, cpuMicros: 12, mainCpuMicros: 10 }

/** A round for each rate. */
function rounds(part: Sample['case'], rates: readonly number[], values = {}): Sample[] {
  return rates.map((callsPerSecond, index) => ({
    case: { ...setting, ...part },
    round: index + 1,
    values: { callsPerSecond, pingMs: 0.2714, p50: 1, p99: 2, ...cpu, ...values },
  }))
}

function shown(samples: readonly Sample[], options: Result['options'] = {}) {
  const rows = Rows.of(store, samples)
  const result = {
    options: { operation: 'update-token', concurrency: 1, ...options },
  } as unknown as Result
  const [section] = store.sections(rows, result)
  const claims = store.claims(rows, result).filter(Boolean)
  return { claims, table: section?.tables[0]?.rows ?? [] }
}

const sequential = rounds({ strategy: 'sequential' }, [700, 720])
const pipeline = rounds({ strategy: 'pipeline' }, [2_100, 2_880])

describe('the report', () => {
  test("has the source articles' figures", () => {
    const { claims, table } = shown([...sequential, ...pipeline])
    expect(table.map((row) => row.slice(0, 5))).toEqual([
      ['sequential', '0.271', '710 (700-720)', '1', '739'],
      ['pipeline', '0.271', '2,490 (2,100-2,880)', '3.46 (3.00-4.00)', '2,841'],
    ])
    expect(claims).toEqual([
      'Over switch, a pipeline makes 3.46 (3.00-4.00) times as many calls per second as one round trip per command (articles: 3.84).',
    ])
  })

  test('omits them for recordView, and for several calls in flight', () => {
    for (const options of [{ operation: 'record-view' }, { concurrency: 64 }]) {
      const { claims, table } = shown([...sequential, ...pipeline], options)
      expect(table.flat()).not.toContain('739')
      expect(claims).toEqual([])
    }
  })

  test('compares pool sizes with the first setting of the same strategy', () => {
    const more = rounds({ strategy: 'pipeline', poolSize: 2 }, [4_200, 5_760])
    const { table } = shown([...sequential, ...pipeline, ...more])
    expect(table[2]?.slice(0, 5)).toEqual(['pipeline', '2', '0.271', '4,980 (4,200-5,760)', '2.00'])
  })

  test('omits CPU time that was not measured', () => {
    const none = { clientCpuMicros: null, cpuMicros: null, mainCpuMicros: null }
    const { claims, table } = shown(rounds({ strategy: 'pipeline' }, [18, 18], none))
    expect(table).toEqual([['pipeline', '0.271', '18.0', '1', '2,841', '1.00', '2.00']])
    expect(claims).toEqual([expect.stringContaining('No CPU time is shown below 100 calls/s')])
  })
})
