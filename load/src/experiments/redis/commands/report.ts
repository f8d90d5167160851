import { BACKGROUND_CLIENTS, BACKGROUND_RATE } from '../../../drivers/redis/background-load.ts'
import { across, fromArticles, median, range, ratio } from '../../../reporting/columns.ts'
import { figure } from '../../../rounds/figures.ts'
import type { Result } from '../../../rounds/result.ts'
import type { Row, Rows } from '../../../rounds/rows.ts'
import type { Section } from '../../../rounds/section.ts'
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

export function sectionsOf(rows: Rows, { options }: Result): Section[] {
  const others = `${BACKGROUND_CLIENTS} others send ${figure(BACKGROUND_RATE)} GET/s`
  const of = (set: string) => rows.where({ set })
  const isDeletion = ({ case: { command } }: Row) => DELETIONS.includes(String(command))
  const latencies = [
    range('p50', 'GET p50 ms'),
    range('p99', 'GET p99 ms'),
    median('max', 'GET longest ms'),
  ]
  return [
    {
      title: 'Command by command',
      rows: of('usual'),
      caption: `redis-benchmark -c 1 -n ${options.requests}`,
      columns: [
        range('perSecond'),
        fromArticles('articles commands/s', ofTests, 'command'),
        ratio('perSecond', '× PING'),
        range('mainCpuMicros'),
      ],
    },
    clientsSection(of('node-clients')),
    {
      title: 'INFO and CLIENT LIST with idle connections',
      rows: of('info'),
      caption: `One client sends a command in a loop, ${others}`,
      columns: [
        range('mainCpuShare'),
        fromArticles('articles %', ofInfo, 'build', 'command', 'idle'),
        range('mainCpuMicros'),
        ...latencies,
      ],
    },
    {
      title: 'LRANGE by number of elements',
      rows: of('big-keys').filter((row) => !isDeletion(row)),
      caption: `One client sends LRANGE in a loop, ${others}`,
      factors: ['command', 'elements'],
      columns: [range('executionMicros'), range('mainCpuMicros'), ...latencies],
    },
    {
      title: 'DEL and UNLINK',
      rows: rows.filter(isDeletion),
      caption: `One key is deleted, ${others}`,
      columns: [
        range('executionMicros'),
        range('backgroundCpuMicros'),
        range('max', 'GET longest ms'),
      ],
    },
  ]
}

/** A line for each client, with a column for each command. */
function clientsSection(all: Rows): Section {
  const commands = all.values('command')
  const [first = ''] = commands
  const rows = all.where({ command: first })
  const heads = commands.map((command) => [`${command} (range)`, { command }])
  return {
    title: 'Clients of Node with one caller',
    rows,
    caption: 'Share of the rate of redis-benchmark -c 1, which keeps its connection',
    factors: rows.varying.filter((name) => name !== 'command'),
    columns: [
      range('perSecond', `${first}/s`),
      ...across(all, Object.fromEntries(heads), ratio('perSecond', '')),
      fromArticles('articles', ofClients, 'client', 'connection'),
    ],
  }
}
