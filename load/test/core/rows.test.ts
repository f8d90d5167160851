import { describe, expect, test } from 'vitest'
import { Rows } from '../../src/experiment/rows.ts'
import type { Shape } from '../../src/experiment/shape.ts'
import {
  errors,
  fromArticles,
  notesOf,
  range,
  ratio,
  tableOf,
} from '../../src/reporting/columns.ts'
import { runsOf } from '../support/result.ts'

const shape: Shape = {
  name: 'toy',
  subject: 'build',
  factors: [
    { name: 'idle', label: 'idle connections' },
    { name: 'way', label: 'way', text: (value) => (value === 'tcp' ? 'TCP' : 'Unix socket') },
    { name: 'build', label: 'build' },
  ],
  metrics: [
    { name: 'rate', label: 'requests/s', kind: 'pace', better: 'higher' },
    { name: 'cpu', label: 'CPU µs', better: 'lower' },
    { name: 'busy', label: 'busy', format: 'percent' },
    { name: 'calls', label: 'calls', format: 'fixed' },
  ],
  doubts: {
    generator: { mark: '*', text: 'The generator was the limit.' },
    crowded: { mark: '!', text: 'Too few cores.', keepsRatios: true },
  },
  baseline: () => ({ build: 'stock' }),
}

const stock = { idle: 0, way: 'tcp', build: 'stock' }
const patched = { idle: 0, way: 'tcp', build: 'patched' }
const crowd = { idle: 10_000, way: 'tcp', build: 'patched' }
const samples = [
  ...runsOf(stock, { rate: [100, 200, 300], cpu: [10, 10, 10], busy: [0.5], calls: [14] }),
  ...runsOf(patched, { rate: [200, 400, 900], cpu: [5, 6, 7], calls: [6.261] }),
  ...runsOf(crowd, { rate: [1] }),
]
const rows = Rows.of(shape, samples)

describe('rows', () => {
  test('are the cases in the order of their first run', () => {
    expect(rows.all.map((row) => rows.nameOf(row))).toEqual([
      'idle connections 0, stock',
      'idle connections 0, patched',
      'idle connections 10,000, patched',
    ])
    expect(rows.rounds).toBe(3)
    expect(rows.by('build').map(({ value, rows: own }) => [value, own.all.length])).toEqual([
      ['stock', 1],
      ['patched', 2],
    ])
  })

  test('a ratio needs a value of the baseline in the same round', () => {
    const row = rows.find(patched)
    expect(row?.ratios('rate', rows.all[0] ?? expect.fail())).toEqual([2, 2, 3])
    expect(row?.ratio('rate', row.baseline(rows))).toMatchObject({ min: 2, max: 3 })
    expect(rows.find(crowd)?.ratio('rate', rows.find(crowd)?.baseline(rows))).toBeNull()
    expect(() => range('size', rows)).toThrow('toy has no metric size')
  })

  test('a doubtful row has ratios of CPU time, but not of rates', () => {
    const doubts = (names: string[]) =>
      Rows.of(shape, [
        ...runsOf(stock, { rate: [1, 1], cpu: [4, 4] }),
        ...runsOf(patched, { rate: [2, 2], cpu: [2, 2] }, { doubts: names }),
      ])
    const ratios = (of: Rows) =>
      ['rate', 'cpu'].map((name) => of.find(patched)?.ratio(name, of.find(stock))?.mean ?? null)
    expect(ratios(doubts([]))).toEqual([2, 0.5])
    expect(ratios(doubts(['generator']))).toEqual([null, 0.5])
    expect(ratios(doubts(['crowded']))).toEqual([2, 0.5])
  })

  test('errors are summed by kind', () => {
    const failing = runsOf(stock, { rate: [1, 1] }, { errors: { 503: 1, timeout: 3 } })
    expect(Rows.of(shape, failing).all[0]?.errors).toEqual({ timeout: 6, 503: 2 })
  })
})

describe('a table', () => {
  test('has columns for factors that vary, and omits empty columns', () => {
    const table = tableOf(rows, {
      caption: 'Toys',
      columns: [
        range('rate', rows),
        ratio('rate', '× stock'),
        'busy',
        'calls',
        fromArticles('articles', { 0: { stock: 10_065, patched: 10_065 } }, 'idle', 'build'),
      ],
    })
    expect(table).toEqual({
      caption: 'Toys',
      head: [
        'idle connections',
        'build',
        'requests/s (range)',
        '× stock (range)',
        'busy',
        'calls',
        'articles',
      ],
      rows: [
        ['0', 'stock', '200 (100-300)', '1', '50.0 %', '14.00', '10,065'],
        ['0', 'patched', '400 (200-900)', '2.29 (2.00-3.00)', '-', '6.26', '10,065'],
        ['10,000', 'patched', '1.00', '-', '-', '-', ''],
      ],
      texts: [1],
    })
    const empty = tableOf(rows.where(crowd), { caption: '', columns: ['busy', 'cpu', errors] })
    expect(empty.head).toEqual(['build', 'errors'])
    expect(empty.rows).toEqual([['patched', '0']])
  })

  test('marks follow the subject and are explained once', () => {
    const marked = Rows.of(shape, [
      ...runsOf(stock, { rate: [1] }, { doubts: ['crowded', 'generator'] }),
      ...runsOf(patched, { rate: [1] }, { doubts: ['generator'], values: { elsewhere: 0.5 } }),
    ])
    const { rows: lines } = tableOf(marked, { caption: '', columns: ['rate'] })
    expect(lines.map(([build]) => build)).toEqual(['stock * !', 'patched * †'])
    expect(notesOf(marked)).toEqual([
      '* The generator was the limit.',
      '! Too few cores.',
      expect.stringMatching(/^† In at least one round, other programs/),
    ])
  })
})
