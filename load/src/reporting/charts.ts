import { figure } from '../experiment/figures.ts'
import type { Row, Rows } from '../experiment/rows.ts'
import type { BarChart, GroupedChart, LineChart } from '../experiment/section.ts'
import { metricOf } from '../experiment/shape.ts'
import { metricText } from './columns.ts'

// Charts from rows, with the words that say the same.

/** A bar for each row, with the range. */
export function bars(rows: Rows, name: string, title: string): BarChart {
  const metric = metricOf(rows.shape, name)
  const { unit = metric.label } = metric
  const known = rows.all.flatMap((row) => {
    const summary = row.summary(name)
    return summary ? [{ row, ...summary }] : []
  })
  const texts = known.map(({ row, median }) => `${row.subject} ${metricText(metric, median)}`)
  return {
    kind: 'bars',
    title,
    description: `${unit}: ${texts.join('; ')}.`,
    unit,
    bars: known.map(({ row, median, min, max }) => ({
      name: row.subject,
      value: median,
      low: min,
      high: max,
      doubtful: row.doubts.length > 0,
    })),
  }
}

/**
 * Several metrics of each row: on top of each other, or side by side.
 *
 * @param chart `metrics` by the names that the chart gives them.
 */
export function groups(
  rows: Rows,
  chart: Pick<GroupedChart, 'kind' | 'title' | 'unit'> & {
    metrics: Readonly<Record<string, string>>
  },
): GroupedChart {
  const { metrics, ...words } = chart
  const texts = rows.all.map((row) => {
    const values = Object.entries(metrics).map(
      ([label, name]) => `${label} ${figure(row.median(name) ?? Number.NaN)}`,
    )
    return `${row.subject} ${values.join(', ')}`
  })
  return {
    ...words,
    description: `${chart.unit}: ${texts.join('; ')}.`,
    names: rows.all.map((row) => row.subject),
    groups: Object.entries(metrics).map(([name, metric]) => ({
      name,
      values: rows.all.map((row) => row.median(metric)),
    })),
  }
}

/** A metric over the values of a factor: a line for each value of another, the subject by default. */
export function lines(
  rows: Rows,
  chart: { metric: string; over: string; by?: string; title: string; logarithmic?: boolean },
): LineChart {
  const { over, by = rows.shape.subject, title, logarithmic = false } = chart
  const metric = metricOf(rows.shape, chart.metric)
  const { unit = metric.label } = metric
  const textOf = ({ all: [first] }: Rows, factor: string) => first?.text(factor) ?? ''
  const ticks = rows.by(over)
  const names = ticks.map((tick) => textOf(tick.rows, over))
  const drawn = rows.by(by).map(({ rows: own }) => ({
    name: textOf(own, by),
    points: ticks.map(
      ({ value }, x) => [x, own.find({ [over]: value })?.median(chart.metric) ?? null] as const,
    ),
  }))
  const texts = drawn.map(
    ({ name, points }) => `${name} ${points.map(([, y]) => metricText(metric, y)).join(', ')}`,
  )
  return {
    kind: 'lines',
    title,
    description: `${unit} at ${names.join(', ')}: ${texts.join('; ')}.`,
    unit,
    x: { label: rows.shape.factors.find(({ name }) => name === over)?.label ?? over, names },
    logarithmic,
    lines: drawn,
  }
}

/** What share of the requests was faster than how much: a line for each row. */
export function percentiles(
  rows: Rows,
  chart: {
    title: string
    unit: string
    curve: (row: Row) => readonly (readonly [share: number, value: number])[]
  },
): LineChart {
  const { title, unit, curve } = chart
  const drawn = rows.all
    .map((row) => ({ name: row.subject, points: curve(row) }))
    .filter(({ points }) => points.length > 1)
  const texts = drawn.map(({ name, points }) => {
    const [share, value] = points.findLast(([share]) => share <= 0.99) ?? [0, Number.NaN]
    return `${name} ${figure(share * 100)} % within ${figure(value)}`
  })
  const description = `${unit}: ${texts.join('; ')}.`
  return {
    kind: 'lines',
    title,
    description,
    unit,
    x: 'percentiles',
    logarithmic: true,
    lines: drawn,
  }
}
