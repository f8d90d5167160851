import type { Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { errors, range, sectionOf } from '../../reporting/columns.ts'

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
