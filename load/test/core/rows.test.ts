import { expect, test } from 'vitest'
import { errors, notesOf, range, ratio, tableOf } from '../../src/reporting/columns.ts'
import { Rows } from '../../src/rounds/rows.ts'
import type { Shape } from '../../src/rounds/shape.ts'
import { runsOf } from '../support/result.ts'

const shape: Shape = {
  name: 'toy',
  subject: 'build',
  factors: [
    { name: 'idle', label: 'idle connections' },
    { name: 'way', label: 'way' },
    { name: 'build', label: 'build' },
  ],
  metrics: [
    { name: 'rate', label: 'requests/s', kind: 'pace', better: 'higher' },
    { name: 'cpu', label: 'CPU µs', better: 'lower' },
    { name: 'busy', label: 'busy', format: 'percent' },
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
const rows = Rows.of(shape, [
  ...runsOf(stock, { rate: [100, 200, 300], cpu: [10, 10, 10], busy: [0.5] }),
  ...runsOf(patched, { rate: [200, 400, 900], cpu: [5, 6, 7] }),
  ...runsOf(crowd, { rate: [1] }),
])

test('rows are named by the factors that vary, and compared with the baseline in the same round', () => {
  expect(rows.all.map((row) => rows.nameOf(row))).toEqual([
    'idle connections 0, stock',
    'idle connections 0, patched',
    'idle connections 10,000, patched',
  ])
  const row = rows.find(patched)
  expect(row?.ratios('rate', rows.all[0] ?? expect.fail())).toEqual([2, 2, 3])
  expect(row?.ratio('rate', row.baseline(rows))).toMatchObject({ min: 2, max: 3 })
  expect(rows.find(crowd)?.ratio('rate', rows.find(crowd)?.baseline(rows))).toBeNull()
})

test('a doubtful row has ratios of CPU time, but not of rates', () => {
  const ratiosWith = (names: string[]) => {
    const doubted = Rows.of(shape, [
      ...runsOf(stock, { rate: [1, 1], cpu: [4, 4] }),
      ...runsOf(patched, { rate: [2, 2], cpu: [2, 2] }, { doubts: names }),
    ])
    const [base, row] = doubted.all
    return ['rate', 'cpu'].map((name) => row?.ratio(name, base)?.mean ?? null)
  }
  expect(ratiosWith([])).toEqual([2, 0.5])
  expect(ratiosWith(['generator'])).toEqual([null, 0.5])
  expect(ratiosWith(['crowded'])).toEqual([2, 0.5])
})

test('a table has columns for factors that vary, omits empty columns, and sums errors by kind', () => {
  const failing = runsOf(stock, { rate: [1, 1] }, { errors: { 503: 1, timeout: 3 } })
  const table = tableOf(Rows.of(shape, failing), { caption: '', columns: ['busy', 'cpu', errors] })
  expect(table.head).toEqual(['build', 'errors'])
  expect(table.rows).toEqual([['stock', 'timeout: 6, 503: 2']])
  const columns = [range('rate'), ratio('rate', '× stock'), 'busy']
  expect(tableOf(rows, { caption: 'Toys', columns })).toEqual({
    caption: 'Toys',
    head: ['idle connections', 'build', 'requests/s (range)', '× stock (range)', 'busy'],
    rows: [
      ['0', 'stock', '200 (100-300)', '1', '50.0 %'],
      ['0', 'patched', '400 (200-900)', '2.29 (2.00-3.00)', '-'],
      ['10,000', 'patched', '1.00', '-', '-'],
    ],
    texts: [1],
  })
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
    expect.stringMatching(/^†/),
  ])
})
