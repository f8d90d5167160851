import { BACKGROUND_CLIENTS, BACKGROUND_RATE } from '../../drivers/redis/background-load.ts'
import { figure, percent } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { fromArticles, marked, range, ratio, sectionOf } from '../../reporting/columns.ts'
import { DELETIONS, LRANGE } from './measure.ts'
import { NEW, REFERENCE } from './node-clients.ts'
import { tests } from './tests.ts'

const ofTests = Object.fromEntries(
  Object.entries(tests).map(([command, [, value = '']]) => [command, value]),
)
const ofInfo = { baseline: { INFO: { 0: 20, 9999: 80 } } }

const inPython = { kept: '0.50-0.60', [NEW]: '0.25-0.30' }
const ofClients = { ioredis: inPython, 'node-redis': inPython }

const deletionsIn = (rows: Rows) =>
  rows.filter(({ case: { command } }) => DELETIONS.includes(String(command)))

export function sectionsOf(rows: Rows, { options }: Result): Section[] {
  const others = `${BACKGROUND_CLIENTS} others send ${figure(BACKGROUND_RATE)} GET/s`
  const deletions = deletionsIn(rows)
  const reads = rows.where({ set: 'big-keys' }).filter((row) => !deletions.all.includes(row))
  const latencies = [range('p50', rows), range('p99', rows), 'max']
  return [
    sectionOf(rows.where({ set: 'usual' }), {
      title: 'Command by command',
      paragraphs: ['The source articles: Redis性能优化方案, listing 10, from Redis in Action.'],
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
      paragraphs: ['The source articles: 张鹏义, Tencent Cloud; Redis 4.0.10.'],
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
        range('max', rows),
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
        'systemCalls',
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
    paragraphs: ['The source articles: Redis性能优化方案, from Redis in Action, in Python.'],
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

export const claimsOf = (rows: Rows) => [
  ...rows.where({ set: 'usual', command: 'PING' }).all.map(pingClaim),
  ...clientClaims(rows.where({ set: 'node-clients' })),
  ...rows
    .where({ set: 'info' })
    .by('build')
    .flatMap(({ rows: own }) => own.by('command').map(infoClaim)),
  lengthClaim(rows.where({ command: LRANGE })),
  ...deletionsIn(rows).by('key').map(deletionClaim),
  ...rows.where({ set: 'large-requests' }).by('elements').flatMap(requestClaims),
]

function pingClaim(row: Row): string {
  const [rate, micros] = [row.median('perSecond') ?? 0, row.median('mainCpuMicros') ?? 0]
  return `${row.text('build')}: at ${figure(rate)} PING/s, Redis's main thread works ${percent((rate * micros) / 1e6)} of the time. The rest of the time, it waits for the next command.`
}

/** The shares of each client, over all commands. */
function clientClaims(rows: Rows): string[] {
  const clients = rows.by('client').filter(({ value }) => value !== REFERENCE.client)
  return clients.map(({ value: client, rows: own }) => {
    const [kept, other] = own.by('connection').map(({ rows: { all } }) => {
      const shares = all.flatMap((row) => row.ratio('perSecond', row.baseline(rows))?.mean ?? [])
      return `${figure(100 * Math.min(...shares))}-${percent(Math.max(...shares))}`
    })
    return `${client} reaches ${kept} of the rate of redis-benchmark -c 1 on one connection, and ${other} with a new connection for each command, by command (articles, in Python: 50-60 % and 25-30 %).`
  })
}

/** The CPU time of a reply with the most idle connections, relative to the fewest. */
function infoClaim({ value: command, rows: { all } }: { value: string | number; rows: Rows }) {
  const [few, many] = [all[0], all.at(-1)]
  const times = many?.ratio('mainCpuMicros', few)
  return (
    times &&
    `${command} (${few?.text('build')}): a reply takes ${figure(times.mean)} times as much CPU time with ${many?.text('idle')} idle connections as with ${few?.case.idle}.`
  )
}

/** The CPU time of the longest reply, and the increase per element. */
function lengthClaim({ all }: Rows): string | null {
  const [short, long] = [all[0], all.at(-1)]
  const [few, many] = [short, long].map((row) => row?.median('mainCpuMicros') ?? Number.NaN)
  if (!short || !long || short === long || few === undefined || many === undefined) return null
  const elements = Number(long.case.elements) - Number(short.case.elements)
  return `An LRANGE of ${long.text('elements')} elements takes ${figure(many)} µs of the main thread's CPU time, ${figure(((many - few) / elements) * 1_000)} ns per additional element.`
}

function deletionClaim({ rows }: { rows: Rows }): string | null {
  const millis = (row: Row | undefined) => figure((row?.median('executionMicros') ?? NaN) / 1_000)
  const [del, unlink] = DELETIONS.map((command) => rows.find({ command }))
  if (!del || !unlink) return null
  return `DEL of a ${del.text('key')} with ${del.text('elements')} elements blocked all other clients for ${millis(del)} ms, UNLINK for ${millis(unlink)} ms.`
}

/** How long requests of this number of values block other clients. */
function requestClaims({ value, rows }: { value: string | number; rows: Rows }): string[] {
  const [pipeline, ...commands] = rows.all
  if (!pipeline || commands.length === 0) return [] // single values
  const list = (all: readonly Row[], millis: (row: Row) => number) =>
    all.map((row) => `${figure(millis(row))} ms (${row.subject})`).join(', ')
  const blocked = list(commands, (row) => (row.median('executionMicros') ?? Number.NaN) / 1_000)
  const p99 = list(rows.all, (row) => row.median('p99') ?? Number.NaN)
  return [
    `With ${figure(Number(value))} values in a request, one command blocks all other clients for ${blocked}. Their p99 is ${p99}.`,
  ]
}
