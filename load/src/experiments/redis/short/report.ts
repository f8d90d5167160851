import { sum } from 'simple-statistics'
import { errors, fromArticles, median, range, ratio } from '../../../reporting/columns.ts'
import { figure } from '../../../rounds/figures.ts'
import type { Result } from '../../../rounds/result.ts'
import type { Row, Rows } from '../../../rounds/rows.ts'
import type { Column, Section } from '../../../rounds/section.ts'
import { articleShapes } from '../settings.ts'
import { shapeOf } from './shapes.ts'

// The loads, in addition to those of the articles.
export const SHORT = 'short'
export const LONG = 'long'
export const BESIDE = 'long beside short'

// Redis短连接性能优化 (ApsaraDB): redis-benchmark -k 0 -t get -n 100000 -c 8000.
const articles = {
  'get-8000': { 'redis-benchmark': { baseline: 10_065, stock: 13_824 } },
}

export function sectionsOf(rows: Rows, { options }: Result): Section[] {
  const of = (...loads: string[]) => rows.filter((row) => loads.includes(String(row.case.load)))
  const traced = of(SHORT).filter((row) => row.median('systemCalls') !== null)
  const main = (unit: string, head = 'CPU × stock') => [
    range('mainCpuMicros', `main thread CPU µs /${unit}`),
    ratio('mainCpuMicros', head),
  ]
  return [
    {
      title: 'Short connections',
      rows: of(SHORT),
      caption: `${options.connections} concurrent short connections: connect, GET, read the reply, close`,
      columns: [
        ...main('connection', '× stock'),
        range('cpuMicros', 'all threads CPU µs /connection'),
        'systemCalls',
        range('perSecond', 'connections/s'),
        'p99',
        errors,
      ],
    },
    {
      title: 'Long connections',
      rows: of(LONG, BESIDE),
      caption: `${options.long} long connections, one GET after another, without and with ${options.connections} short connections`,
      columns: [range('perSecond'), range('p50'), range('p99'), ...main('command')],
    },
    ...articleShapes.map((load) => ({
      title: `The articles' ${load}`,
      rows: of(load),
      caption: `redis-benchmark ${shapeOf(load, Number(options.requests) || undefined).args}, and our generator with the same load`,
      columns: [
        range('perSecond', 'requests/s'),
        ratio('perSecond', '× stock'),
        fromArticles('articles requests/s', articles, 'load', 'tool', 'build'),
        ...main('request'),
        'max',
        errors,
      ],
    })),
    {
      title: 'At low rates',
      rows: of('rates'),
      caption: 'Short connections at a constant rate; several clients connect at the same moment',
      columns: [
        range('cpuMicros', 'all threads CPU µs /connection'),
        ratio('cpuMicros', '× stock'),
        range('mainCpuMicros', 'main thread CPU µs /connection'),
        ratio('mainCpuMicros', 'main thread × stock'),
        'p50',
        'p99',
        errors,
      ],
    },
    {
      title: 'A burst of clients while another client runs commands of 10 ms',
      rows: of('burst'),
      caption: 'Time from connecting to the reply',
      columns: [range('p50'), range('p99'), errors],
    },
    {
      title: 'Clients that shut down their sending side',
      rows: of('half-close'),
      caption: 'Time until they see the end of the connection',
      columns: [range('p50'), range('p99')],
    },
    {
      title: 'System calls of the main thread',
      isDetail: true,
      rows: traced,
      caption: 'System calls of the main thread per short connection, by name',
      columns: [median('systemCalls', 'all'), ...callsByName(traced)],
    },
  ]
}

/** A column for each frequent system call: the mean over the runs in which calls were counted. */
function callsByName({ all }: Rows): Column[] {
  const callsOf = ({ samples }: Row, name: string) => {
    const counted = samples.flatMap<Record<string, number>>(({ details }) =>
      details?.systemCalls ? [details.systemCalls as Record<string, number>] : [],
    )
    return sum(counted.map((calls) => calls[name] ?? 0)) / counted.length
  }
  const known = all.flatMap(({ samples }) =>
    samples.flatMap((one) => one.details?.systemCalls ?? {}),
  )
  return [...new Set(known.flatMap(Object.keys))]
    .filter((name) => all.some((row) => callsOf(row, name) >= 0.01))
    .map((name) => ({ head: name, cell: (row) => figure(callsOf(row, name)) }))
}
