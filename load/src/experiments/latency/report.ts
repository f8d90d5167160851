import { type Percentile, percentText } from '@onetrip/stack/measure/latencies.ts'
import { FAILED } from '../../drivers/http/paced.ts'
import { across, errors, range, ratio } from '../../reporting/columns.ts'
import { figure, withRange } from '../../rounds/figures.ts'
import type { Rows } from '../../rounds/rows.ts'
import type { Column, Section } from '../../rounds/section.ts'
import { perSecond } from './rates.ts'
import { HIGHEST_RATE } from './search.ts'

/** Results of older versions: rates are shares of the slowest variant's capacity. */
const OLD_SHARE = /^\d+ %$/

/** A line for each variant, with its p99 at each rate; then a table for each rate. */
export function sectionsOf(rows: Rows): Section[] {
  const rates = rows.values('at')
  const heads = rates.map((at) => [
    rows.find({ at })?.median(HIGHEST_RATE)
      ? `requests/s, ${at}`
      : `p99 ms at ${shortOf(String(at))}`,
    { at },
  ])
  const first = rows.where({ at: rates[0] ?? '' })
  const summary: Section = {
    title: 'p99 by rate',
    rows: first.filter(() => rates.length > 1),
    caption: 'p99 in ms, from the scheduled time; with a limit, the highest rate within it',
    factors: first.varying,
    columns: across(rows, Object.fromEntries(heads), {
      cell: (row) => {
        const highest = row.median(HIGHEST_RATE)
        return highest === null ? percentileText(row.value('p99')) : figure(highest)
      },
    }),
  }
  return [summary, ...rows.by('at').map(({ rows: own }) => sectionAt(own)), capacity(rows)]
}

/** `2,000/s`, `90 % of its own` */
const shortOf = (at: string) => at.replace(' requests/s', '/s').replace(' capacity', '')

/** What a rate of 1,000 requests/s takes, from the middle one of the rates that all variants had. */
function capacity(rows: Rows): Section {
  const rates = rows.values('at').filter((at) => /^[\d,]+ requests/.test(String(at)))
  const at = rates[Math.floor((rates.length - 1) / 2)] ?? ''
  const each = (head: string, metric: string, perSecond: number): Column => ({
    head,
    cell: (row) => figure((row.median(metric) ?? Number.NaN) * perSecond),
  })
  return {
    title: 'For 1,000 requests/s',
    rows: rows.where({ at }),
    caption: `For 1,000 requests/s, measured at ${at}`,
    factors: ['variant'],
    columns: [
      each('cores of the API', 'apiCpuMicros', 1e-3),
      each("of a core, Redis's main thread", 'redisMainCpuMicros', 1e-3),
      each('connections opened /s', 'connections', 1_000),
    ],
  }
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
      range('apiCpuMicros'),
      range('redisCpuMicros'),
    ],
  }
}

/** Without the range of the rounds. */
const percentileText = (value: number | null) =>
  value === FAILED ? 'failed' : value === null ? '-' : figure(value)

const percentileColumn = (name: Percentile): Column => ({
  head: `${percentText(name)} ms`,
  cell(row) {
    const value = row.value(name)
    if (value === null || value === FAILED) return percentileText(value)
    const { min = value, max = value } = row.summary(name) ?? {}
    return withRange({ median: value, min, max })
  },
})
