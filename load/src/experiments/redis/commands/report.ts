import { BACKGROUND_CLIENTS, BACKGROUND_RATE } from '../../../drivers/redis/background-load.ts'
import { figure } from '../../../experiment/figures.ts'
import type { Result } from '../../../experiment/result.ts'
import type { Row, Rows } from '../../../experiment/rows.ts'
import type { Section } from '../../../experiment/section.ts'
import {
  fromArticles,
  marked,
  median,
  range,
  ratio,
  sectionOf,
} from '../../../reporting/columns.ts'
import { DELETIONS } from './measure.ts'
import { NEW } from './node-clients.ts'
import { tests } from './tests.ts'

const ofTests = Object.fromEntries(
  Object.entries(tests).map(([command, [, value = '']]) => [command, value]),
)
// 张鹏义, Tencent Cloud; Redis 4.0.10.
const ofInfo = { baseline: { INFO: { 0: 20, 9999: 80 } } }

// Redis性能优化方案, from Redis in Action.
const inPython = { kept: '0.50-0.60', [NEW]: '0.25-0.30' }
const ofClients = { ioredis: inPython, 'node-redis': inPython }

const deletionsIn = (rows: Rows) =>
  rows.filter(({ case: { command } }) => DELETIONS.includes(String(command)))

export function sectionsOf(rows: Rows, { options }: Result): Section[] {
  const others = `${BACKGROUND_CLIENTS} others send ${figure(BACKGROUND_RATE)} GET/s`
  const deletions = deletionsIn(rows)
  const reads = rows.where({ set: 'big-keys' }).filter((row) => !deletions.all.includes(row))
  const longest = 'GET longest ms'
  const latencies = [
    range('p50', rows, 'GET p50 ms'),
    range('p99', rows, 'GET p99 ms'),
    median('max', rows, longest),
  ]
  return [
    sectionOf(rows.where({ set: 'usual' }), {
      title: 'Command by command',
      caption: `redis-benchmark -c 1 -n ${options.requests}`,
      columns: [
        range('perSecond', rows),
        fromArticles('articles commands/s', ofTests, 'command'),
        ratio('perSecond', '× PING'),
        range('mainCpuMicros', rows),
      ],
    }),
    clientsSection(rows.where({ set: 'node-clients' })),
    sectionOf(rows.where({ set: 'info' }), {
      title: 'INFO and CLIENT LIST with idle connections',
      caption: `One client sends a command in a loop, ${others}`,
      columns: [
        range('mainCpuShare', rows),
        fromArticles('articles %', ofInfo, 'build', 'command', 'idle'),
        range('mainCpuMicros', rows),
        ...latencies,
      ],
    }),
    sectionOf(reads, {
      title: 'LRANGE by number of elements',
      caption: `One client sends LRANGE in a loop, ${others}`,
      factors: ['command', 'elements'],
      columns: [range('executionMicros', rows), range('mainCpuMicros', rows), ...latencies],
    }),
    sectionOf(deletions, {
      title: 'DEL and UNLINK',
      caption: `One key is deleted, ${others}`,
      columns: [
        range('executionMicros', rows),
        range('backgroundCpuMicros', rows),
        range('max', rows, longest),
      ],
    }),
    sectionOf(rows.where({ set: 'large-requests' }), {
      title: 'Many values in one request',
      caption: `One client sends requests in a loop, ${others}`,
      factors: ['command'],
      columns: [
        { head: 'values per request', cell: (row) => row.text('elements') },
        range('perSecond', rows, 'values/s'),
        range('mainCpuMicros', rows, 'main thread CPU µs /value'),
        median('systemCalls', rows, 'system calls /1,000 values'),
        range('executionMicros', rows),
        ...latencies,
      ],
    }),
  ].filter(({ tables: [table] }) => table?.rows.length)
}

/** A line for each client, with a column for each command. */
function clientsSection(rows: Rows): Section {
  const [first = ''] = rows.values('command')
  const lines = rows.where({ command: first })
  const share = ratio('perSecond', '')
  return sectionOf(lines, {
    title: 'Clients of Node with one caller',
    caption: 'Share of the rate of redis-benchmark -c 1, which keeps its connection',
    factors: lines.varying.filter((name) => name !== 'command'),
    columns: [
      range('perSecond', rows, `${first}/s`),
      ...rows.values('command').map((command) => ({
        head: `${command} (range)`,
        cell(line: Row) {
          const row = rows.find({ ...line.case, command })
          return row ? marked(row, share.cell(row, rows)) : ''
        },
      })),
      fromArticles('articles', ofClients, 'client', 'connection'),
    ],
  })
}
