import { figure } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import { type Row, Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { bars, lines } from '../../reporting/charts.ts'
import {
  type Column,
  documented,
  errors,
  median,
  range,
  ratio,
  tableOf,
} from '../../reporting/columns.ts'
import { shapeNames, shapeOf } from './shapes.ts'

/** The loads besides the documents' shapes. */
export const SHORT = 'short'
export const LONG = 'long'
export const BESIDE = 'long beside short'

export function sectionsOf(rows: Rows, { options }: Result): Section[] {
  const short = rows.where({ load: SHORT })
  const long = rows.filter(({ case: { load } }) => load === LONG || load === BESIDE)
  const traced = short.filter((row) => row.median('systemCalls') !== null)
  return [
    {
      title: 'Short connections',
      charts: charts(short),
      tables: [
        tableOf(short, {
          caption: `${options.connections} short connections at a time: connect, GET, read the reply, close`,
          columns: [
            range('mainCpuMicros', short, 'main thread CPU µs /connection'),
            ratio('mainCpuMicros', '× stock'),
            median('cpuMicros', short, 'all threads CPU µs /connection'),
            'systemCalls',
            range('requestsPerSecond', short, 'connections/s'),
            'p99',
            errors,
          ],
        }),
      ],
    },
    {
      title: 'Long connections meanwhile',
      tables: [
        tableOf(long, {
          caption: `${options.long} long connections, one GET after the other; alone, and beside ${options.connections} short ones`,
          columns: [
            range('requestsPerSecond', long, 'commands/s'),
            range('p50', long),
            range('p99', long),
            range('mainCpuMicros', long, 'main thread CPU µs /command'),
          ],
        }),
      ],
    },
    ...shapeNames.map((shape) => {
      const own = rows.where({ load: shape })
      return {
        title: `The documents' ${shape}`,
        charts: charts(own),
        tables: [
          tableOf(own, {
            caption: `redis-benchmark ${shapeOf(shape, options).args}, and the same by our generator`,
            columns: [
              range('requestsPerSecond', own),
              ratio('requestsPerSecond', '× stock'),
              documented('requestsPerSecond', 'documents requests/s'),
              range('mainCpuMicros', own),
              ratio('mainCpuMicros', 'CPU × stock'),
              'max',
              errors,
            ],
          }),
        ],
      }
    }),
    {
      title: 'System calls of the main thread',
      pageOnly: true,
      tables: [
        tableOf(traced, {
          caption: 'System calls of the main thread per short connection, by name',
          columns: [median('systemCalls', traced, 'all'), ...callsByName(traced)],
        }),
      ],
    },
  ].filter(({ tables }) => tables.some((table) => table.rows.length > 0))
}

export function claimsOf(rows: Rows): string[] {
  const short = rows.where({ load: SHORT })
  const isCounted = short.all.some((row) => row.median('systemCalls') !== null)
  return [
    ...short
      .by('build')
      .toReversed()
      .flatMap(({ rows: own }) => groupsOf(own).flatMap((group) => claimOf(group.rows, short))),
    ...(short.all.length === 0 || isCounted
      ? []
      : ['System calls were not counted: strace is not here, or must not trace Redis.']),
  ]
}

/** Rows that differ in nothing but the build and the idle connections beside. */
function groupsOf({ all, shape }: Rows): { name: string; rows: Rows }[] {
  const nameOf = (row: Row) =>
    ['tool', 'transport', 'threads'].flatMap((factor) => row.text(factor) || []).join(', ')
  const groups = [...Map.groupBy(all, nameOf)]
  return groups.map(([name, own]) => ({ name, rows: new Rows(shape, own) }))
}

const charts = (rows: Rows) =>
  groupsOf(rows).map(({ name, rows: own }) => {
    const title = `${name}: main thread CPU per request`
    return own.values('idle').length > 1
      ? lines(own, { metric: 'mainCpuMicros', over: 'idle', title })
      : bars(own, 'mainCpuMicros', title)
  })

/** A column for each of those that matter, as the first traced run counted them. */
function callsByName(rows: Rows): Column[] {
  const callsOf = (row: Row) => {
    const traced = row.samples.find(({ details }) => details?.systemCalls)
    return (traced?.details?.systemCalls ?? {}) as Readonly<Record<string, number>>
  }
  const names = new Set(rows.all.flatMap((row) => Object.keys(callsOf(row))))
  return [...names]
    .filter((name) => rows.all.some((row) => (callsOf(row)[name] ?? 0) >= 0.01))
    .map((name) => ({ head: name, cell: (row) => figure(callsOf(row)[name] ?? 0) }))
}

/** What a short connection costs a build, from its rows with different numbers of idle connections. */
function claimOf({ all }: Rows, rows: Rows): string[] {
  const [first] = all
  const ratios = all.flatMap((row) => row.ratio('mainCpuMicros', row.baseline(rows))?.median ?? [])
  if (!first || ratios.length === 0) return []
  const idle = extremes(all.map((row) => Number(row.case.idle)))
  const over = first.case.transport === 'unix' ? 'a Unix socket' : 'TCP'
  const threads = first.case.threads === 1 ? '' : ` with ${first.case.threads} I/O threads`
  const [calls, stock] = [first, first.baseline(rows)].map((row) =>
    figure(row?.median('systemCalls') ?? Number.NaN),
  )
  const fewer = calls === stock ? '' : `, with ${calls} system calls instead of ${stock}`
  return [
    `Over ${over}${threads}, a short connection costs the main thread of ${first.subject} ${extremes(ratios).map(figure).join(' to ')} times the CPU time of stock's, beside ${idle.map((count) => count.toLocaleString('en-US')).join(' to ')} idle connections${fewer}.`,
  ]
}

/** The lowest and the highest value, or the only one. */
const extremes = (values: readonly number[]) => [
  ...new Set([Math.min(...values), Math.max(...values)]),
]
