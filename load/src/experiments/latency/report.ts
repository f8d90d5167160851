import { type Percentile, percentText } from '@onetrip/stack/measure/latencies.ts'
import { FAILED } from '../../drivers/http/paced.ts'
import { figure, withRange } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Column, Section } from '../../experiment/section.ts'
import { across, errors, range, ratio } from '../../reporting/columns.ts'
import { perSecond } from './rates.ts'
import { HIGHEST_RATE } from './search.ts'

/** Results of older versions: rates are shares of the slowest variant's capacity. */
const OLD_SHARE = /^\d+ %$/

/** A line for each variant, with its p99 at each rate; then a table for each rate. */
export function sectionsOf(rows: Rows): Section[] {
  const rates = rows.values('at')
  const heads = rates.map((at) => [
    rows.find({ at })?.median(HIGHEST_RATE) ? `requests/s, ${at}` : `p99 ms at ${at}`,
    { at },
  ])
  const first = rows.where({ at: rates[0] ?? '' })
  const summary: Section = {
    title: 'p99 by rate',
    rows: first.filter(() => rates.length > 1),
    caption: 'p99 in ms, from the scheduled time; with a limit, the highest rate within it',
    factors: first.varying,
    columns: across(rows, Object.fromEntries(heads), {
      cell: (row) =>
        row.median(HIGHEST_RATE) === null
          ? percentileColumn('p99').cell(row, rows)
          : figure(row.median(HIGHEST_RATE) ?? 0),
    }),
  }
  return [summary, ...rows.by('at').map(({ rows: own }) => sectionAt(own))]
}

function sectionAt(rows: Rows): Section {
  const [first] = rows.all
  const at = first?.text('at') ?? ''
  if (rows.all.some((row) => row.median(HIGHEST_RATE) !== null)) {
    return {
      title: 'The highest rates',
      rows,
      caption: `Highest rate with ${at}, median of the rounds (range)`,
      columns: [
        range(HIGHEST_RATE),
        ratio(HIGHEST_RATE, `× ${first?.baseline(rows)?.subject}`),
        'latency',
        'runs',
        errors,
      ],
    }
  }
  const old = `${perSecond(first?.median('rate') ?? 0)} (${at} of the capacity of the slowest variant)`
  const name = OLD_SHARE.test(at) ? old : at
  return {
    title: `At ${name}`,
    rows,
    caption: `Latency at ${name} in ms, from the scheduled time, over all rounds (range of the rounds). Requests that failed or were not sent count as the slowest`,
    columns: [
      ...(/own/.test(at) ? ['rate'] : []),
      ...(['p50', 'p90', 'p99', 'p999', 'p9999'] as const).map(percentileColumn),
      { head: 'longest ms', cell: (row) => figure(row.value('max') ?? Number.NaN) },
      { head: 'requests due', cell: (row) => figure(row.total('due')) },
      errors,
      'late',
      'apiCpuMicros',
      'redisCpuMicros',
    ],
  }
}

const percentileColumn = (name: Percentile): Column => ({
  head: `${percentText(name)} ms`,
  cell(row) {
    const value = row.value(name)
    if (value === FAILED) return 'failed'
    if (value === null) return '-'
    const { min = value, max = value } = row.summary(name) ?? {}
    return withRange({ median: value, min, max })
  },
})
