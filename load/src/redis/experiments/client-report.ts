import { styleText } from 'node:util'
import { figure, percent, type TextTable, withRange } from '../../table.ts'
import { describeOthers, describeOwn, readingRows, type Yardstick } from './client-diagnosis.ts'
import { type ClientName, type Row, yardstickOf } from './client-summary.ts'
import type { Others } from './client-target.ts'

export const labels: Record<ClientName, string> = {
  benchmark: 'redis-benchmark -c 1',
  raw: 'a plain socket',
  ioredis: 'ioredis',
  store: 'our store',
  'store-32': 'our store, 32 calls at a time',
  'benchmark-reconnect': 'redis-benchmark -c 1 -k 0',
  reconnect: 'a plain socket per command',
  'reconnect-ioredis': 'an ioredis client per command',
}

const inDocuments: Partial<Record<ClientName, string>> = {
  benchmark: '100 %',
  ioredis: '50-60 %',
  reconnect: '25-30 %',
}

export interface Diagnosed {
  rows: readonly Row[]
  reference: ClientName
  /** Commands per second of the user's own client. */
  mine: number | undefined
  /** Null where the server did not tell; undefined where nobody looked. */
  others: Others | null | undefined
}

/** The tables and sentences of the diagnosis. */
export function findings(diagnosed: Diagnosed): { tables: TextTable[]; conclusions: string[] } {
  const { rows, reference, mine, others } = diagnosed
  const yardstick = yardstickOf(rows, reference)
  const lines = [
    ...(yardstick ? [reuse(yardstick)] : []),
    ...(yardstick && mine !== undefined ? [styleText('bold', describeOwn(mine, yardstick))] : []),
    ...(others ? [styleText('bold', describeOthers(others))] : []),
    ...(others === null
      ? ['What other clients do is not known: this user may not call INFO.']
      : []),
    ...failures(rows),
    ...(reference === 'raw'
      ? [`The reference is ${labels.raw}, for redis-benchmark cannot be used.`]
      : []),
  ]
  const tables = [clientTable(rows)]
  if (yardstick) {
    tables.push({
      title: 'How to read the rate of one client here:',
      head: ['what it means', 'in the documents', 'here', 'commands/s'],
      rows: readingRows(yardstick),
    })
  }
  return { tables, conclusions: lines }
}

function clientTable(rows: readonly Row[]): TextTable {
  return {
    title: 'One client, one command at a time unless the row says otherwise',
    head: [
      'client',
      'commands/s\nmedian (range)',
      '% of the\nreference',
      'documents',
      'p50\nms',
      'p99\nms',
      'conn.\n/cmd.',
      'Redis main\nCPU µs/cmd.',
    ],
    rows: rows.map((row) => [
      labels[row.client],
      withRange(row.perSecond),
      row.share ? percent(row.share.median) : '-',
      inDocuments[row.client] ?? '',
      row.p50?.median.toFixed(3) ?? '-',
      row.p99?.median.toFixed(3) ?? '-',
      row.connections ? row.connections.median.toFixed(2) : '-',
      row.mainMicros ? figure(row.mainMicros.median) : '-',
    ]),
  }
}

/** What keeping the connection is worth here. */
function reuse({ keeps, reconnects, reconnectsWithGreeting }: Yardstick): string {
  const text =
    `Beside ioredis on one connection, a client that opens one for each command does ` +
    `${percent(reconnects / keeps)} of the commands, and ${percent(reconnectsWithGreeting / keeps)} ` +
    `with what ioredis says on each new connection (HELLO, CLIENT SETINFO twice, INFO).`
  return styleText('bold', text)
}

function failures(rows: readonly Row[]): string[] {
  const failed = rows
    .filter(({ errors }) => errors.length > 0)
    .map(({ client, errors }) => `${labels[client]} ended early: ${errors.join('; ')}`)
  if (!rows.some(({ outOfPorts }) => outOfPorts)) return failed
  const why =
    'There was no port left for another connection, since each keeps its port for a minute after it ' +
    'was closed. This is what "Cannot assign requested address" means: keep connections. In a minute ' +
    'this can be repeated.'
  return [...failed, styleText('bold', why)]
}
