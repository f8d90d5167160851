import { type Percentile, percentText } from '@onetrip/stack/measure/latencies.ts'
import { FAILED } from '../../drivers/http/paced.ts'
import { figure, withRange } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { type Column, errors, range, ratio, sectionOf } from '../../reporting/columns.ts'
import { perSecond } from './rates.ts'
import { HIGHEST_RATE } from './search.ts'

export const sectionsOf = (rows: Rows, { options }: Result): Section[] =>
  options.limit === undefined
    ? rows.by('at').map(({ rows: own }) => sectionAt(own))
    : [highestRates(rows)]

const limitOf = ({ all: [first] }: Rows) => first?.text('at')

const highestRates = (rows: Rows): Section =>
  sectionOf(rows, {
    title: 'The highest rates',
    caption: `Highest rate with ${limitOf(rows)}, median of the rounds (range)`,
    columns: [
      range(HIGHEST_RATE, rows),
      ratio(HIGHEST_RATE, `× ${rows.all[0]?.baseline(rows)?.subject}`),
      'latency',
      'runs',
      errors,
    ],
  })

function rateText({ all: [first] }: Rows): string {
  const rate = perSecond(first?.median('rate') ?? Number.NaN)
  const at = first?.text('at') ?? ''
  return at === rate ? rate : `${rate} (${at} of the capacity of the slowest variant)`
}

function sectionAt(rows: Rows): Section {
  return sectionOf(rows, {
    title: `At ${rateText(rows)}`,
    caption: `Latency at ${rateText(rows)} in ms, from the scheduled time, over all rounds (range of the rounds). Requests that failed or were not sent count as the slowest`,
    columns: [
      ...(['p50', 'p90', 'p99', 'p999', 'p9999'] as const).map(percentileColumn),
      { head: 'longest ms', cell: (row) => figure(row.value('max') ?? Number.NaN) },
      { head: 'requests due', cell: (row) => figure(row.total('due')) },
      errors,
      'late',
      'apiCpuMicros',
      'redisCpuMicros',
    ],
  })
}

function percentileColumn(name: Percentile): Column {
  return {
    head: `${percentText(name)} ms`,
    cell(row) {
      const value = row.value(name)
      if (value === FAILED) return 'failed'
      if (value === null) return '-'
      const { min = value, max = value } = row.summary(name) ?? {}
      return withRange({ median: value, min, max })
    },
  }
}
