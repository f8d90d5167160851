import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import { BACKGROUND_CLIENTS, BACKGROUND_RATE } from '../../drivers/redis/background-load.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import { startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import { asCpu, asLatency, product } from '../../experiment/shape.ts'
import { range, sectionOf } from '../../reporting/columns.ts'
import {
  type Bench,
  DELETIONS,
  deleteOnce,
  fillKey,
  LRANGE,
  NOTHING,
  READ,
  readInLoop,
  type Type,
  types,
} from './commands.ts'

interface BigKeysOptions {
  lengths: number[]
  elements: number
}

/** The CPU time of commands on many elements, and the latency of other clients during them. */
export const bigKeys: Experiment<BigKeysOptions, Bench> = {
  name: 'big-keys',
  title: 'Redis: commands on big keys',
  summary: 'LRANGE by length, DEL and UNLINK, and the latency of other clients',
  group: 'Redis',
  about: `
Redis executes one command at a time, so all other clients wait during a command on many elements. First, one
client sends LRANGE in a loop, with different numbers of elements. Then a key with many elements is deleted: by
DEL, which frees the memory in the main thread, and by UNLINK, which frees it in a background thread. Redis runs
with lazyfree-lazy-user-del no, its default. (With Onetrip's redis.conf, DEL works like UNLINK.)

During this, ${BACKGROUND_CLIENTS} other clients send ${BACKGROUND_RATE} GETs per second. Their latency is measured from when a GET is due.
Execution times are from INFO commandstats; they exclude reading the command and writing the reply.

Examples:
  npm run load -- big-keys --lengths 100,1000 --elements 5000000`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.5, elements: 100_000 },
  configure(command) {
    const lengths = [1, 10, 100, 1_000, 10_000, 100_000]
    const count = wholeNumber(1_000, 20_000_000)
    command
      .addOption(
        numbersOption('--lengths <list>', 'elements of an LRANGE', [1, 1_000_000], lengths),
      )
      .option('--elements <n>', 'elements of a deleted key', count, 1_000_000)
  },
  isolated: () => ['patched'],

  factors: [{ name: 'key' }, { name: 'command' }, { name: 'elements', label: 'elements' }],
  subject: 'command',
  metrics: [
    { name: 'executionMicros', label: 'execution µs /command', ...asCpu },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCpu },
    { name: 'backgroundCpuMicros', label: 'background CPU µs /command', ...asCpu },
    { name: 'p50', label: 'GET p50 ms', ...asLatency },
    { name: 'p99', label: 'GET p99 ms', ...asLatency },
    { name: 'max', label: 'GET longest ms' },
  ],
  progress: ['executionMicros', 'max'],
  baseline: ({ command }) => (command === 'UNLINK' ? { command: 'DEL' } : null),

  async prepare(context, { lengths }) {
    await requireConnections(BACKGROUND_CLIENTS + 2)
    const config = { 'lazyfree-lazy-user-del': 'no' }
    const server = await startFilledRedis(context, {
      build: 'patched',
      busy: BACKGROUND_CLIENTS,
      config,
    })
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    const elements = Math.max(...lengths)
    await fillKey(redis, { key: READ, type: 'list', elements }, context.signal)
    return { server, redis }
  },

  cases: (_, { lengths, elements }) => [
    { command: NOTHING },
    ...product({ key: ['list'], command: [LRANGE], elements: lengths }),
    ...product({ key: types, command: DELETIONS, elements: [elements] }),
  ],

  async measure(one, bench, { options: { duration }, context: { signal } }) {
    const [command, elements] = [String(one.command), Number(one.elements ?? 0)]
    return DELETIONS.includes(command)
      ? await deleteOnce(bench, { command, type: one.key as Type, elements }, signal)
      : await readInLoop(bench, { elements, seconds: duration, signal })
  },

  sections(rows) {
    const deletions = deletionsIn(rows)
    const reads = rows.filter((row) => !deletions.all.includes(row))
    const others = `${BACKGROUND_CLIENTS} other clients send ${figure(BACKGROUND_RATE)} GET/s`
    return [
      sectionOf(reads, {
        title: 'LRANGE by number of elements',
        caption: `One client sends LRANGE in a loop; ${others}`,
        factors: ['command', 'elements'],
        columns: [
          range('executionMicros', reads),
          range('mainCpuMicros', reads),
          ...[range('p50', reads), range('p99', reads), 'max'],
        ],
      }),
      sectionOf(deletions, {
        title: 'DEL and UNLINK',
        caption: `One key is deleted; ${others}`,
        columns: [
          range('executionMicros', deletions),
          range('backgroundCpuMicros', deletions),
          range('max', deletions),
        ],
      }),
    ].filter(({ tables: [table] }) => table?.rows.length)
  },

  claims: (rows) => [lengthClaim(rows), ...deletionsIn(rows).by('key').map(deletionClaim)],
}

const deletionsIn = (rows: Rows) =>
  rows.filter(({ case: { command } }) => DELETIONS.includes(String(command)))

/** The CPU time of the longest reply, and the increase per element. */
function lengthClaim(rows: Rows): string | null {
  const { all } = rows.where({ command: LRANGE })
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
