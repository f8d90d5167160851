import { figure } from '../experiment/figures.ts'
import type { Row, Rows } from '../experiment/rows.ts'
import type { BarChart, GroupedChart, LineChart } from '../experiment/section.ts'
import type { Case } from '../experiment/shape.ts'
import { metricText } from './columns.ts'

// Charts from rows, with the words that say the same.

const metricOf = (rows: Rows, name: string) => {
  const metric = rows.all[0]?.metric(name)
  if (metric) return { unit: metric.label, ...metric }
  throw new RangeError(`no rows for a chart of ${name}`)
}

/**
 * A chart of a metric for each group of rows that differ in the subject only: lines over the values of
 * another factor, `over`, where there are several; else bars.
 */
export function chartsOf(
  rows: Rows,
  metric: string,
  over = '',
  options: { logarithmic?: boolean } = {},
): (BarChart | LineChart)[] {
  return rows.groups(rows.shape.subject, over).map(({ name, rows: own }) => {
    const title = [metricOf(own, metric).label, name].filter(Boolean).join(': ')
    return own.values(over).length > 1
      ? lines(own, { metric, over, title, ...options })
      : bars(own, metric, `${title} (range of the rounds; hatched: marked in the table)`)
  })
}

/** A bar for each row, with the range. */
export function bars(rows: Rows, name: string, title: string): BarChart {
  const metric = metricOf(rows, name)
  const known = rows.all.filter((row) => row.summary(name))
  const told = known.map((row) => `${row.subject} ${metricText(metric, row.median(name))}`)
  return {
    kind: 'bars',
    title,
    description: `${metric.unit}: ${told.join('; ')}.`,
    unit: metric.unit,
    bars: known.flatMap((row) => {
      const summary = row.summary(name)
      if (!summary) return []
      const { median: value, min: low, max: high } = summary
      return [{ name: row.subject, value, low, high, doubtful: row.doubts.length > 0 }]
    }),
  }
}

/** Several metrics of each row: on top of each other, or side by side. */
export function groups(
  rows: Rows,
  chart: {
    kind: GroupedChart['kind']
    title: string
    unit: string
    /** Metrics by the names that the chart gives them. */
    metrics: Readonly<Record<string, string>>
  },
): GroupedChart {
  const { kind, title, unit, metrics } = chart
  const told = rows.all.map((row) => {
    const values = Object.entries(metrics).map(
      ([label, name]) => `${label} ${figure(row.median(name) ?? Number.NaN)}`,
    )
    return `${row.subject} ${values.join(', ')}`
  })
  return {
    ...{ kind, title, unit },
    description: `${unit}: ${told.join('; ')}.`,
    names: rows.all.map((row) => row.subject),
    groups: Object.entries(metrics).map(([label, metric]) => ({
      name: label,
      values: rows.all.map((row) => row.median(metric)),
    })),
  }
}

/** A metric over the values of a factor: a line for each value of another, the subject by default. */
export function lines(
  rows: Rows,
  chart: { metric: string; over: string; by?: string; title: string; logarithmic?: boolean },
): LineChart {
  const { metric: name, over, title, logarithmic = false } = chart
  const metric = metricOf(rows, name)
  const { factors } = rows.shape
  const by = chart.by ?? rows.shape.subject
  const ticks = rows.by(over)
  const names = ticks.map(({ rows: own }) => own.all[0]?.text(over) ?? '')
  const drawn = rows.by(by).map(({ rows: own }) => ({
    name: own.all[0]?.text(by) ?? '',
    points: ticks.map(({ value }, index) => [index, at(own, { [over]: value }, name)] as const),
  }))
  const told = drawn.map(
    ({ name, points }) => `${name} ${points.map(([, y]) => metricText(metric, y)).join(', ')}`,
  )
  return {
    kind: 'lines',
    title,
    description: `${metric.unit} at ${names.join(', ')}: ${told.join('; ')}.`,
    unit: metric.unit,
    x: { label: factors.find((one) => one.name === over)?.label ?? over, names },
    logarithmic,
    lines: drawn,
  }
}

const at = (rows: Rows, part: Partial<Case>, metric: string) =>
  rows.find(part)?.median(metric) ?? null

/** What share of the requests was faster than how much: a line for each row. */
export function percentiles(
  rows: Rows,
  chart: {
    title: string
    unit: string
    curve: (row: Row) => readonly (readonly [number, number])[]
  },
): LineChart {
  const drawn = rows.all
    .map((row) => ({ name: row.subject, points: chart.curve(row) }))
    .filter(({ points }) => points.length > 1)
  const told = drawn.map(({ name, points }) => {
    const [share, value] = points.findLast(([share]) => share <= 0.99) ?? [0, Number.NaN]
    return `${name} ${figure(share * 100)} % within ${figure(value)}`
  })
  return {
    kind: 'lines',
    title: chart.title,
    description: `${chart.unit}: ${told.join('; ')}.`,
    unit: chart.unit,
    x: 'percentiles',
    logarithmic: true,
    lines: drawn,
  }
}
