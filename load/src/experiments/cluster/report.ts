import { counted, figure } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { errors, range, sectionOf } from '../../reporting/columns.ts'
import { VIEWED } from './memory.ts'
import { NO_CLUSTER } from './views.ts'

export const sectionsOf = (rows: Rows): Section[] =>
  [
    sectionOf(rows.where({ part: 'views' }), {
      title: 'CPU time and network traffic of a view',
      caption: 'Per view, of all nodes together; medians of the rounds',
      factors: ['nodes', 'inFlight'],
      columns: [
        range('mainCpuMicros', rows),
        'busiestMicros',
        'otherCpuMicros',
        'clientCpuMicros',
        'batches',
        'commands',
        'bytesIn',
        'bytesOut',
      ],
    }),
    sectionOf(rows.where({ part: 'memory' }), {
      title: 'Memory',
      caption: 'Growth of used_memory',
      factors: ['sessions', 'items', 'dataBytes'],
      columns: ['bytes', 'perSession', 'resident'],
    }),
    sectionOf(rows.where({ part: 'slot-move' }), {
      title: 'How long a move blocks the nodes',
      caption: 'One key moves with MIGRATE',
      factors: ['key', 'sessions'],
      columns: [
        'megabytes',
        range('sourceMs', rows),
        range('targetMs', rows),
        'migrateMs',
        'restoreMs',
        errors,
      ],
    }),
  ].filter(({ tables: [table] }) => table?.rows.length)

export function claimsOf(rows: Rows) {
  const inFlight = Math.max(...rows.values('inFlight').map(Number))
  return [
    ...rows.where({ part: 'views', inFlight }).all.map(viewClaim),
    ...rows.where({ part: 'memory', items: VIEWED }).all.map(memoryClaim),
    ...rows.where({ part: 'slot-move' }).by('key').map(moveClaim),
  ]
}

const medianOf = (row: Row, metric: string) => figure(row.median(metric) ?? Number.NaN)

function viewClaim(row: Row): string {
  const count = Number(row.case.nodes)
  const where = count === NO_CLUSTER ? 'Without a cluster' : `With ${counted(count, 'node')}`
  return `${where}, a view takes ${medianOf(row, 'mainCpuMicros')} µs of CPU time of all main threads, and ${medianOf(row, 'busiestMicros')} µs of the busiest main thread.`
}

const memoryClaim = (row: Row) =>
  `${row.text('sessions')} sessions with ${VIEWED} viewed items each need ${medianOf(row, 'perSession')} bytes per session.`

function moveClaim({ rows }: { rows: Rows }): string | null {
  const row = rows.all.findLast((one) => one.median('sourceMs'))
  if (!row) return null
  const nanos = ((row.median('sourceMs') ?? 0) * 1e6) / Number(row.case.sessions)
  return `Moving ${row.text('key')} with ${row.text('sessions')} sessions blocked the source for ${medianOf(row, 'sourceMs')} ms and the target for ${medianOf(row, 'targetMs')} ms, which is ${figure(nanos)} ns per session at the source.`
}
