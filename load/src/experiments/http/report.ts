import { across, errors, range, ratio } from '../../reporting/columns.ts'
import { figure } from '../../rounds/figures.ts'
import { Rows } from '../../rounds/rows.ts'
import type { Column, Section } from '../../rounds/section.ts'
import { type Case, product } from '../../rounds/shape.ts'
import { descriptions } from '../../variants.ts'

const RATE = 'requestsPerSecond'

/** From the slowest way of sending to the default; each row of the table of steps is compared with the one above. */
const steps = ['naive', 'sequential', 'pipeline', 'autopipelining', 'node-redis', 'batch']

const timesAbove: Column = {
  head: '× the row above',
  cell(row, rows) {
    const above = rows.all[rows.all.indexOf(row) - 1]
    const ratio = row.ratio(RATE, above)
    return above ? (ratio ? figure(ratio.mean) : '-') : ''
  },
}

/** `64 callers at 1 ms` */
function nameOf({ link, connections }: Case): string {
  const callers = connections === 1 ? 'one caller' : `${connections} callers`
  const distance = String(link).replace(/^([\d.]+)(\w+)@1Gb\/s$/, '$1 $2')
  return distance === 'loopback' ? callers : `${callers} at ${distance}`
}

export function sectionsOf(rows: Rows): Section[] {
  const base = rows.all[0]?.baseline(rows)?.subject
  // None for a result without these factors.
  const links = rows.values('link')
  const conditions = product({ link: links, connections: rows.values('connections') })
  const most = Math.max(...rows.values('connections').map(Number))
  const main = { link: links[0] ?? '', connections: most }
  const perRequest = (name: string, own = rows): Section => ({
    title: 'Throughput',
    rows: own,
    caption: `All variants${name}, per request that reached the API`,
    columns: [
      range(RATE),
      ratio(RATE, `× ${base}`),
      'p50',
      'p99',
      'connections',
      'commands',
      'roundTrips',
      range('apiCpuMicros'),
      range('redisMainCpuMicros'),
      range('redisCpuMicros'),
      errors,
    ],
  })
  const heads = conditions.map((values) => [`× ${base} with ${nameOf(values)} (range)`, values])
  const tables: Section[] =
    conditions.length > 1
      ? [
          {
            title: 'Throughput',
            rows: rows.where(main),
            caption: `Requests/s compared with ${base}; CPU time with ${nameOf(main)}`,
            columns: [
              ...across(rows, Object.fromEntries(heads), ratio(RATE, '')),
              range('apiCpuMicros'),
              range('redisCpuMicros'),
            ],
          },
          ...conditions.map((values) => perRequest(`, ${nameOf(values)}`, rows.where(values))),
        ]
      : [perRequest('')]
  const stepRows = rows.where(main)
  const found = steps.flatMap((variant) => stepRows.find({ variant }) ?? [])
  const each = rows.filter((row) => rows.find({ variant: row.case.variant ?? '' }) === row)
  return [
    {
      title: 'Step by step',
      rows: new Rows(rows.shape, found.length < steps.length - 1 ? [] : found),
      caption: `${nameOf(main)}: medians of the rounds`,
      factors: ['variant'],
      columns: [RATE, timesAbove, 'p99', 'apiCpuMicros', 'redisCpuMicros'],
    },
    ...tables,
    {
      title: 'The variants',
      isDetail: true,
      rows: each,
      caption: 'How the commands of a request reach Redis',
      factors: [],
      columns: [
        { head: 'variant', isText: true, cell: (row) => row.subject },
        { head: 'how', isText: true, cell: ({ subject }) => descriptionOf(subject) },
      ],
    },
  ]
}

const descriptionOf = (variant: string) =>
  Object.entries(descriptions).find(([name]) => name === variant)?.[1] ?? ''

/** Compares batch with naive, under the last conditions. */
export function conclusionOf(rows: Rows): string | null {
  const naive = rows.all.findLast(({ case: one }) => one.variant === 'naive')
  const batch = naive && rows.find({ ...naive.case, variant: 'batch' })
  const rate = batch?.ratio(RATE, naive)
  if (!naive || !batch || !rate) return null
  const times = (metric: string) =>
    (naive.median(metric) ?? Number.NaN) / (batch.median(metric) ?? Number.NaN)
  const [api, redis] = [times('apiCpuMicros'), times('redisCpuMicros')]
  const cpu = `, which opens a connection to Redis for each request and so takes ${figure(api)} times the CPU time of the API and ${figure(redis)} times that of Redis`
  return `On this machine, batch answered ${figure(rate.mean)} times as many requests per second as naive${Number.isNaN(api + redis) ? '' : cpu}.`
}
