import { errorKinds, figure, percent, withRange, withRatioRange } from '../rounds/figures.ts'
import type { Row, Rows } from '../rounds/rows.ts'
import type { Column, ColumnOf, Section, Table } from '../rounds/section.ts'
import { type Case, type Metric, metricOf } from '../rounds/shape.ts'

/** The table of a section. Marks follow the subject. */
export function tableOf(
  rows: Rows,
  { caption, columns, factors = rows.varying }: Pick<Section, 'caption' | 'columns' | 'factors'>,
): Table {
  const shown = [
    ...factors.map((name) => factorColumn(name, rows)),
    ...columns.map((column) => {
      const of = typeof column === 'string' ? median(column) : column
      return typeof of === 'function' ? of(rows.shape) : of
    }),
  ]
    .map((column) => ({ ...column, cells: rows.all.map((row) => column.cell(row, rows)) }))
    .filter(({ cells }) => cells.some((cell) => cell !== '' && cell !== '-'))
  return {
    caption,
    head: shown.map(({ head }) => head),
    rows: rows.all.map((_, index) => shown.map(({ cells }) => cells[index] ?? '')),
    texts: shown.flatMap(({ isText }, index) => (isText ? [index] : [])),
  }
}

function factorColumn(name: string, rows: Rows): Column {
  const { factors, subject } = rows.shape
  const marks = (row: Row) => (name === subject ? row.doubts.map(({ mark }) => mark) : [])
  return {
    head: factors.find((factor) => factor.name === name)?.label ?? name,
    cell: (row) => [row.text(name), ...marks(row)].join(' '),
    isText: !rows.all.every(({ case: one }) => typeof one[name] === 'number'),
  }
}

/** A figure followed by the marks of its row. */
export const marked = (row: Row, text: string): string =>
  [text, ...row.doubts.map(({ mark }) => mark)].join(' ')

/** The explanation of each mark that the rows have. */
export function notesOf(rows: Rows): string[] {
  const doubts = new Set(rows.all.flatMap((row) => row.doubts))
  return [...doubts].map(({ mark, text }) => `${mark} ${text}`)
}

/** A formatted value of a metric; `-` for none. */
export function metricText({ format }: Metric, value: number | null): string {
  if (value === null) return '-'
  if (format === 'percent') return percent(value)
  if (format === 'whole') return Math.round(value).toLocaleString('en-US')
  return format === 'fixed' ? value.toFixed(2) : figure(value)
}

/** The median over the rounds. */
export const median =
  (name: string, head?: string): ColumnOf =>
  (shape) => {
    const metric = metricOf(shape, name)
    return { head: head ?? metric.label, cell: (row) => metricText(metric, row.median(name)) }
  }

/** The median over the rounds, with the range: `13.9 (13.5-14.4)`. */
export const range =
  (name: string, head?: string): ColumnOf =>
  (shape) => {
    const metric = metricOf(shape, name)
    const text = (value: number) => metricText(metric, value)
    return {
      head: `${head ?? metric.label} (range)`,
      // Keeps only the first percent sign: `50.0 % (49.0-51.0)`.
      cell: (row) => withRange(row.summary(name), text).replace(/ %-(.*) %\)$/, '-$1)'),
    }
  }

/**
 * The ratio to the baseline of the experiment, paired by round: the geometric mean with the range.
 *
 * @param head `× naive`
 */
export const ratio = (name: string, head: string): Column => ({
  head: `${head} (range)`,
  cell(row, rows) {
    if (row.median(name) === null) return '-'
    const base = row.baseline(rows)
    return base === row ? '1' : withRatioRange(row.ratio(name, base))
  },
})

/**
 * The same column for several cases, in tables whose lines stand for all of them. Figures have the marks of their row.
 *
 * @param cases the values of factors by which each case differs from the line, by the head of its column.
 */
export const across = (
  all: Rows,
  cases: Readonly<Record<string, Case>>,
  { cell }: Pick<Column, 'cell'>,
): Column[] =>
  Object.entries(cases).map(([head, values]) => ({
    head,
    cell(line) {
      const row = all.find({ ...line.case, ...values })
      return row ? marked(row, cell(row, all)) : ''
    },
  }))

/** Figures of the articles, nested by the values of one or more factors. */
interface ArticleFigures {
  readonly [value: string]: number | string | ArticleFigures
}

/** A column with the articles' figure for the same case. */
export const fromArticles = (
  head: string,
  figures: ArticleFigures,
  ...factors: readonly string[]
): Column => ({
  head,
  cell({ case: one }) {
    const found = factors.reduce<ArticleFigures[string]>(
      (part, factor) => (typeof part === 'object' && part[String(one[factor])]) || '',
      figures,
    )
    return typeof found === 'number' ? figure(found) : String(found)
  },
})

/** Failures by kind: `0`, or `503: 12, timeout: 3`. */
export const errors: Column = {
  head: 'errors',
  isText: true,
  cell: (row) => errorKinds(row.errors),
}
