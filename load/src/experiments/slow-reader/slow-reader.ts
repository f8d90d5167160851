import { redisAddress } from '@onetrip/stack/address.ts'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure, percent } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import { bars } from '../../reporting/charts.ts'
import { type Column, range, tableOf } from '../../reporting/columns.ts'
import { fill, type Reading, readAll, readNothing, readThroughStore, type Work } from './client.ts'
import { LEVEL_MS, watchMemory } from './memory.ts'

interface SlowReaderOptions {
  /** How much Redis is asked for in each run. */
  megabytes: number
}

interface Bench {
  server: RedisServer
  redis: Redis
}

/** How replies are read, and what the server is told to do about clients that do not. */
interface Mode {
  name: string
  read(work: Work): Promise<Reading>
  /** Settings of Redis that differ from its defaults; `LIMIT` stands for the limit. */
  settings?: Readonly<Record<string, string>>
}

const MEGABYTE = 2 ** 20
const LIMIT = '{limit}'
const PIPELINE_COMMANDS = 100

/** Redis's own defaults. */
export const defaults: Readonly<Record<string, string>> = {
  'client-output-buffer-limit': 'normal 0 0 0',
  'maxmemory-clients': '0',
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
}

export const modes: Readonly<Record<string, Mode>> = {
  unlimited: { name: 'not read, no limit', read: readNothing },
  'output-limit': {
    name: 'not read, client-output-buffer-limit',
    read: readNothing,
    settings: { 'client-output-buffer-limit': `normal ${LIMIT} 0 0` },
  },
  'client-memory': {
    name: 'not read, maxmemory-clients',
    read: readNothing,
    settings: { 'maxmemory-clients': LIMIT },
  },
  maxmemory: {
    name: 'not read, maxmemory (noeviction)',
    read: readNothing,
    settings: { maxmemory: LIMIT },
  },
  'one-pipeline': {
    name: 'read at once, one pipeline',
    read: (work) => readAll(work, Number.POSITIVE_INFINITY),
  },
  pipelines: {
    name: `read at once, pipelines of ${PIPELINE_COMMANDS}`,
    read: (work) => readAll(work, PIPELINE_COMMANDS),
  },
  store: {
    name: 'our store, 500 calls at a time',
    read: (work) => readThroughStore(work, 500),
  },
  'store-at-once': {
    name: 'our store, all calls at once',
    read: (work) => readThroughStore(work, Number.POSITIVE_INFINITY),
  },
}

const limitMegabytes = (megabytes: unknown) => Math.round(Number(megabytes) / 4)

/** What replies that nobody reads do to a server, and what limits them. */
export const slowReader: Experiment<SlowReaderOptions, Bench> = {
  name: 'slow-reader',
  title: 'Redis: replies that nobody reads',
  summary: 'memory of a server whose client does not read the replies to its pipelines',
  group: 'Redis',
  about: `
A plain socket sends GET, MGET, HGETALL and LRANGE, each answered with 10 kB, at an even pace for
--duration seconds, and reads nothing: without limits; with a limit on the replies that wait for one
client (client-output-buffer-limit), on what all clients together have (maxmemory-clients), and on all
memory (maxmemory). Limits are a quarter of what is asked for. Another client writes a key every 25 ms.

The same reads are then sent by a client that reads every reply at once, in one pipeline and in
pipelines of ${PIPELINE_COMMANDS}. About as many bytes are read through our store (viewedItems, two commands), whose
process stops for 0.3 s in between: with 500 calls at a time, and with all of them at once, of which
the store refuses those beyond 1,000 in flight.

Memory is what Redis has allocated (used_memory) beyond what it had before the run; it is read every
2 ms. One Redis of our build, over TCP.

Examples:
  npm run load -- slow-reader --quick
  npm run load -- slow-reader --megabytes 256 --rounds 1`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.5 },
  seconds: { quick: null, usual: null, full: 30 },
  configure(command) {
    command.option('--megabytes <n>', 'replies asked for in a run', wholeNumber(16, 512), 64)
  },

  factors: [
    {
      name: 'client',
      label: 'client and setting',
      text: (value) => modes[value]?.name ?? String(value),
    },
  ],
  subject: 'client',
  metrics: [
    {
      ...{ name: 'addedMegabytes', label: 'memory added, peak MB', unit: 'MB' },
      ...{ kind: 'count', better: 'lower', least: 2 },
    },
    { name: 'readMegabytes', label: 'replies read MB', unit: 'MB' },
    { name: 'commands', label: 'commands', unit: 'commands' },
    { name: 'closedAfter', label: 'closed by Redis after s', unit: 's', format: 'fixed' },
    { name: 'refusedWrites', label: "others' writes refused", unit: 'share', format: 'percent' },
    { name: 'refusedCalls', label: 'calls refused by the store', unit: 'calls' },
  ],
  progress: ['addedMegabytes'],
  loadOptions: ['megabytes'],

  async prepare(context) {
    const server = await context.startRedis({ build: 'patched' })
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    await fill(redis)
    return { server, redis }
  },

  cases: () => Object.keys(modes).map((client) => ({ client })),

  async measure({ client }, { server, redis }, { options: { megabytes, duration }, context }) {
    const mode = modes[String(client)]
    if (!mode) throw new RangeError(`no mode ${client}`)
    const { signal } = context
    for (const [name, value] of Object.entries({ ...defaults, ...mode.settings })) {
      const limit = `${limitMegabytes(megabytes)}mb`
      await redis.config('SET', name, value.replace(LIMIT, limit))
    }
    const url = `redis://127.0.0.1:${server.port}`
    const work: Work = {
      ...{ url, address: redisAddress(url).options, signal },
      ...{ replyBytes: megabytes * MEGABYTE, sendMs: duration * 1_000 },
    }
    const watched = await watchMemory(redis, signal, () => mode.read(work))
    const { baseBytes, peakBytes, levels, closedBy, closedAfterMs, otherWrites, result } = watched
    return {
      values: {
        addedMegabytes: (peakBytes - baseBytes) / MEGABYTE,
        readMegabytes: result.bytesRead / MEGABYTE,
        commands: result.commands,
        closedAfter: closedAfterMs === null ? null : closedAfterMs / 1_000,
        refusedWrites: otherWrites.refused / (otherWrites.done + otherWrites.refused),
        refusedCalls: result.refused,
      },
      series: { memoryMegabytes: levels.map((bytes) => bytes / MEGABYTE) },
      ...(closedBy !== null && { details: { closedBy } }),
    }
  },

  sections: (rows, { options: { megabytes } }) => [
    {
      title: 'Memory that replies take',
      charts: [bars(rows, 'addedMegabytes', 'Memory of Redis beyond what it had before')],
      tables: [
        tableOf(rows, {
          caption: `Memory of Redis beyond what it had before; ${megabytes} MB of replies asked for, limits of ${limitMegabytes(megabytes)} MB`,
          columns: [
            range('addedMegabytes', rows),
            'readMegabytes',
            'closedAfter',
            'refusedWrites',
            overTime(rows),
          ],
        }),
      ],
    },
  ],

  claims(rows) {
    const find = (client: string) => rows.find({ client })
    const added = (client: string) => `${figure(find(client)?.median('addedMegabytes') ?? NaN)} MB`
    const closed = (client: string) => {
      const after = find(client)?.median('closedAfter') ?? null
      return after === null
        ? 'did not close the client'
        : `closed the client after ${after.toFixed(2)} s`
    }
    return [
      `Replies that nobody reads took ${added('unlimited')} of the server's memory. client-output-buffer-limit ${closed('output-limit')}, at ${added('output-limit')}; maxmemory-clients ${closed('client-memory')}, at ${added('client-memory')}.`,
      `maxmemory alone does not limit them (${added('maxmemory')}). Other clients pay: ${percent(find('maxmemory')?.median('refusedWrites') ?? 0)} of their writes were refused.`,
      `A client that reads every reply at once still costs ${added('one-pipeline')} when it asks for everything in one pipeline, and ${added('pipelines')} in pipelines of ${PIPELINE_COMMANDS} commands.`,
      `Our store, which reads all that it asks for and has at most 1,000 calls in flight, took ${added('store')}, although its process stopped in between. Called without restraint it took ${added('store-at-once')} and refused ${counted(find('store-at-once')?.median('refusedCalls') ?? 0, 'call')} at once.`,
    ]
  },
}

const blocks = '▁▂▃▄▅▆▇█'

/** Memory over the time of the first round as a line of blocks. */
function overTime(rows: Rows): Column {
  const levelsOf = (row: Row) => row.samples[0]?.series?.memoryMegabytes ?? []
  const highest = Math.max(...rows.all.flatMap(levelsOf))
  return {
    head: `memory over time (round 1, ${LEVEL_MS / 1_000} s each)`,
    isText: true,
    cell: (row) => sparkline(levelsOf(row), highest),
  }
}

/** @param highest the level of the highest block. */
export function sparkline(levels: readonly number[], highest: number): string {
  const block = (level: number) => Math.ceil((blocks.length * level) / highest) - 1
  return levels
    .map((level) => blocks[Math.min(Math.max(block(level), 0), blocks.length - 1)])
    .join('')
}
