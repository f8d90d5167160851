import {
  errorKinds,
  figure,
  percent,
  withInterval,
  withRange,
  withRatioRange,
} from '../experiment/figures.ts'
import type { Row, Rows } from '../experiment/rows.ts'
import type { Section, Table } from '../experiment/section.ts'
import { type Case, type Metric, metricOf } from '../experiment/shape.ts'
import type { Ratio } from '../experiment/statistics.ts'

/** A column of a table: its head, and what a row has in it. */
export interface Column {
  readonly head: string
  cell(row: Row, rows: Rows): string
  /** Left-aligned, as words are. */
  readonly isText?: boolean
}

interface TableOptions {
  caption: string
  columns: readonly (Column | string)[]
  /** The first columns. Default: the factors in which the rows differ. */
  factors?: readonly string[] | undefined
}

/** A section with one table. */
export function sectionOf(
  rows: Rows,
  { caption, columns, factors, ...section }: TableOptions & Omit<Section, 'tables'>,
): Section {
  return { ...section, tables: [tableOf(rows, { caption, columns, factors })] }
}

/**
 * A table with a line for each row, without empty columns. The first columns are the factors in which the
 * rows differ; the marks of a row's doubts stand beside its subject. A metric's name stands for its median.
 */
export function tableOf(rows: Rows, options: TableOptions): Table {
  const columns = [
    ...(options.factors ?? rows.varying).map((name) => factorColumn(name, rows)),
    ...options.columns.map((column) =>
      typeof column === 'string' ? median(column, rows) : column,
    ),
  ]
  const shown = columns
    .map((column) => ({ ...column, cells: rows.all.map((row) => column.cell(row, rows)) }))
    .filter(({ cells }) => cells.some((cell) => cell !== '' && cell !== '-'))
  return {
    caption: options.caption,
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

/** What the marks in rows mean, each once. */
export function notesOf(rows: Rows): string[] {
  const doubts = new Set(rows.all.flatMap((row) => row.doubts))
  return [...doubts].map(({ mark, text }) => `${mark} ${text}`)
}

/** A metric's value as it is shown, `-` for none. */
export function metricText({ format }: Metric, value: number | null): string {
  if (value === null) return '-'
  if (format === 'percent') return percent(value)
  if (format === 'whole') return Math.round(value).toLocaleString('en-US')
  return format === 'fixed' ? value.toFixed(2) : figure(value)
}

/** The median over the rounds. */
export function median(name: string, rows: Rows, head?: string): Column {
  const metric = metricOf(rows.shape, name)
  return { head: head ?? metric.label, cell: (row) => metricText(metric, row.median(name)) }
}

/** The median over the rounds, with the range: `13.9 (13.5-14.4)`. */
export function range(name: string, rows: Rows, head?: string): Column {
  const metric = metricOf(rows.shape, name)
  const text = (value: number) => metricText(metric, value)
  return {
    head: `${head ?? metric.label} (range)`,
    // One sign is enough: `50.0 % (49.0-51.0)`.
    cell: (row) => withRange(row.summary(name), text).replace(/ %-(.*) %\)$/, '-$1)'),
  }
}

/** A metric as a multiple of a baseline's. */
const multiple =
  (kind: string, text: (ratio: Ratio | null) => string) =>
  (name: string, head: string, base?: Partial<Case>): Column => ({
    head: `${head} ${kind}`,
    cell(row, rows) {
      const other = base ? rows.find({ ...row.case, ...base }) : row.baseline(rows)
      return other === row ? '1' : text(row.ratio(name, other))
    },
  })

/**
 * How many times the metric of a baseline, round by round: the geometric mean with the range.
 *
 * @param base what sets the baseline's case apart: `{ variant: 'naive' }`. Default: the experiment's own.
 */
export const ratio = multiple('(range)', withRatioRange)

/** The same with the mean's 95 % interval. */
export const interval = multiple('mean (95 % interval)', withInterval)

/** Figures of the source articles, by the value of one factor, or of several, one in the other. */
export interface Documented {
  readonly [value: string]: number | string | Documented
}

/** What the source articles measured of the same case. */
export const documented = (
  head: string,
  figures: Documented,
  ...factors: readonly string[]
): Column => ({
  head,
  cell({ case: one }) {
    const found = factors.reduce<Documented[string]>(
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
