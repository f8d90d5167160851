import type { Row, Rows } from '../experiment/rows.ts'
import type { BarChart, GroupedChart, LineChart } from '../experiment/section.ts'
import { metricOf } from '../experiment/shape.ts'
import { limits } from '../variants.ts'

/**
 * Charts of a metric, one for each group of rows that differ in the subject only. With `over`, a chart has lines
 * over the values of that factor, or bars if there are fewer than three values.
 */
export function chartsOf(
  rows: Rows,
  metric: string,
  over = '',
  options: { logarithmic?: boolean } = {},
): (BarChart | LineChart)[] {
  const { subject } = rows.shape
  const titled = (name: string) =>
    [metricOf(rows.shape, metric).label, name].filter(Boolean).join(': ')
  return rows.groups(subject, over).flatMap(({ name, rows: own }): (BarChart | LineChart)[] => {
    if (own.values(over).length > 2) {
      return [lines(own, { metric, over, title: titled(name), ...options })]
    }
    const names = (group: string) => [name, group].filter(Boolean).join(', ')
    return own.groups(subject).map((group) => bars(group.rows, metric, titled(names(group.name))))
  })
}

/** A bar for each row, with the range. Sorted by length, unless the subject is a number. */
export function bars(rows: Rows, name: string, title: string): BarChart {
  const { label, unit = label } = metricOf(rows.shape, name)
  const all = rows.all.flatMap((row) => {
    const summary = row.summary(name)
    if (!summary) return []
    const { median: value, min: low, max: high } = summary
    return { name: row.subject, value, low, high, doubtful: row.doubts.length > 0 }
  })
  const isNumber = rows.values(rows.shape.subject).every((value) => typeof value === 'number')
  return {
    ...{ kind: 'bars', title, unit },
    bars: all
      .filter(({ name }) => !limits.includes(name))
      .toSorted((a, b) => (isNumber ? 0 : b.value - a.value)),
    ceilings: all.filter(({ name }) => limits.includes(name)),
  }
}

/** A stacked bar of several metrics for each row, the smallest sum first. @param chart.metrics by displayed name. */
export function groups(
  rows: Rows,
  chart: { title: string; unit: string; metrics: Readonly<Record<string, string>> },
): GroupedChart {
  const { title, unit, metrics } = chart
  const sum = (row: Row) =>
    Object.values(metrics).reduce((total, metric) => total + (row.median(metric) ?? 0), 0)
  const sorted = rows.all.toSorted((a, b) => sum(a) - sum(b))
  return {
    ...{ kind: 'stacked', title, unit },
    names: sorted.map((row) => row.subject),
    groups: Object.entries(metrics).map(([name, metric]) => ({
      name,
      values: sorted.map((row) => row.median(metric)),
    })),
  }
}

/** A metric over the values of a factor, with a line for each value of the subject. */
export function lines(
  rows: Rows,
  chart: { metric: string; over: string; title: string; logarithmic?: boolean },
): LineChart {
  const { metric, over, title, logarithmic = false } = chart
  const { subject } = rows.shape
  const { label, unit = label } = metricOf(rows.shape, metric)
  const textOf = ({ all: [first] }: Rows, factor: string) => first?.text(factor) ?? ''
  const ticks = rows.by(over)
  return {
    kind: 'lines',
    title,
    unit,
    x: {
      label: rows.shape.factors.find(({ name }) => name === over)?.label ?? over,
      names: ticks.map((tick) => textOf(tick.rows, over)),
    },
    logarithmic,
    lines: rows.by(subject).map(({ rows: own }) => ({
      name: textOf(own, subject),
      points: ticks.map(({ value }, x) => [x, own.find({ [over]: value })?.median(metric) ?? null]),
    })),
  }
}

/** Latency by percentile: a small chart for each row, all with the same axes. */
export function percentiles(
  rows: Rows,
  chart: {
    title: string
    unit: string
    curve: (row: Row) => readonly (readonly [share: number, value: number])[]
  },
): LineChart[] {
  const { title, unit, curve } = chart
  const lines = rows.all
    .map((row) => ({ name: row.subject, points: curve(row) }))
    .filter(({ points }) => points.length > 1)
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value))
  const shared = [Math.min(...values), Math.max(...values)] as const
  return lines.map((line) => ({
    ...{ kind: 'lines', title: `${line.name}: ${title}`, unit, x: 'percentiles' },
    ...{ logarithmic: true, shared, lines: [line] },
  }))
}

/** Throughput and p99 over time, with a line for each row. The rounds follow one another on the time axis. */
export function timeCharts(rows: Rows): LineChart[] {
  const rounds = [...new Set(rows.all.flatMap(({ samples }) => samples.map(({ round }) => round)))]
  const seriesOf = (row: Row, round: number) =>
    row.samples.find((sample) => sample.round === round)?.series
  /** The time axis of each round is that of its longest run. */
  const axis = rounds.map((round) =>
    rows.all
      .map((row) => seriesOf(row, round)?.second ?? [])
      .reduce((longest, one) => (one.length > longest.length ? one : longest), []),
  )
  if (axis.flat().length < 2) return []
  // The empty name makes a gap between two rounds.
  const names = axis.flatMap((seconds) => [...seconds.map((second) => second.toFixed(0)), ''])
  const chart = (title: string, unit: string, name: 'requestsPerSecond' | 'p99'): LineChart => ({
    ...{ kind: 'lines', title: `${title}, second by second`, unit, logarithmic: false },
    x: { label: 'seconds of each round', names: names.slice(0, -1) },
    lines: rows.all.map((row) => ({
      name: row.subject,
      points: rounds
        .flatMap((round, index) => {
          const values = seriesOf(row, round)?.[name] ?? []
          return [...(axis[index] ?? []).map((_, at) => values[at] ?? null), null]
        })
        .slice(0, -1)
        .map((value, x) => [x, value] as const),
    })),
  })
  return [chart('Throughput', 'requests/s', 'requestsPerSecond'), chart('p99', 'ms', 'p99')]
}
