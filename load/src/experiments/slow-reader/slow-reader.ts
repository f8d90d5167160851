import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure, percent } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import { asCount } from '../../experiment/shape.ts'
import { bars } from '../../reporting/charts.ts'
import { type Column, range, tableOf } from '../../reporting/columns.ts'
import type { Reading, Work } from './client.ts'
import { LEVEL_MS, watchMemory } from './memory.ts'

interface SlowReaderOptions {
  /** How much Redis is asked for in each run. */
  megabytes: number
}

interface Bench {
  redis: Redis
  read(work: Work): Promise<Reading>
}

const MEGABYTE = 2 ** 20
const PIPELINE_COMMANDS = 100

/** Redis's own defaults. */
const defaults = {
  'client-output-buffer-limit': 'normal 0 0 0',
  'maxmemory-clients': '0',
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
}

/** How replies are read, and what the server is told to do about clients that do not read them. */
interface Mode {
  name: string
  reads: Work['reads']
  atOnce?: number
  settings?(limit: string): Partial<typeof defaults>
}

const modes: Readonly<Record<string, Mode>> = {
  unlimited: { name: 'not read, no limit', reads: 'nothing' },
  'output-limit': {
    ...{ name: 'not read, client-output-buffer-limit', reads: 'nothing' },
    settings: (limit) => ({ 'client-output-buffer-limit': `normal ${limit} 0 0` }),
  },
  'client-memory': {
    ...{ name: 'not read, maxmemory-clients', reads: 'nothing' },
    settings: (limit) => ({ 'maxmemory-clients': limit }),
  },
  maxmemory: {
    ...{ name: 'not read, maxmemory (noeviction)', reads: 'nothing' },
    settings: (limit) => ({ maxmemory: limit }),
  },
  'one-pipeline': { name: 'read at once, one pipeline', reads: 'all' },
  pipelines: {
    ...{ name: `read at once, pipelines of ${PIPELINE_COMMANDS}`, reads: 'all' },
    atOnce: PIPELINE_COMMANDS,
  },
  store: { name: 'our store, 500 calls at a time', reads: 'store', atOnce: 500 },
  'store-at-once': { name: 'our store, all calls at once', reads: 'store' },
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

A client that reads every reply at once sends the same in one pipeline and in pipelines of ${PIPELINE_COMMANDS}. About as
many bytes are read through our store (viewedItems), whose thread stops for 0.3 s in between: with 500
calls at a time, and with all at once, of which the store refuses those beyond 1,000 in flight.

Memory is what Redis has allocated (used_memory) beyond what it had before the run, read every 2 ms.

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
    { name: 'client', label: 'client and setting', text: (value) => modes[value]?.name ?? '' },
  ],
  subject: 'client',
  metrics: [
    { name: 'addedMegabytes', label: 'memory added, peak MB', unit: 'MB', ...asCount, least: 2 },
    { name: 'readMegabytes', label: 'replies read MB' },
    { name: 'closedAfter', label: 'closed by Redis after s', format: 'fixed' },
    { name: 'refusedWrites', label: "others' writes refused", format: 'percent' },
    { name: 'refusedCalls', label: 'calls refused by the store' },
  ],
  progress: ['addedMegabytes'],
  loadOptions: ['megabytes'],

  async prepare(context) {
    const { socket, port } = await context.startRedis({ build: 'patched' })
    const redis = new Redis(socket)
    context.defer(() => redis.disconnect())
    const worker = new Worker(new URL('./client.ts', import.meta.url), { workerData: { port } })
    context.defer(() => worker.terminate())
    const answer = async () => (await once(worker, 'message', { signal: context.signal }))[0]
    await answer() // ready
    return {
      redis,
      read(work) {
        worker.postMessage(work)
        return answer()
      },
    }
  },

  cases: () => Object.keys(modes).map((client) => ({ client })),

  async measure({ client }, { redis, read }, { options, context: { signal } }) {
    const mode = modes[String(client)]
    if (!mode) throw new RangeError(`no mode ${client}`)
    const { reads, atOnce = Number.POSITIVE_INFINITY, settings } = mode
    const limit = `${limitMegabytes(options.megabytes)}mb`
    await redis.config('SET', ...Object.entries({ ...defaults, ...settings?.(limit) }).flat())
    const replyBytes = options.megabytes * MEGABYTE
    const sendMs = options.duration * 1_000
    const { result, levels, closedAfter, refusedWrites } = await watchMemory(redis, signal, () =>
      read({ reads, replyBytes, atOnce, sendMs }),
    )
    const memoryMegabytes = levels.map((bytes) => bytes / MEGABYTE)
    return {
      values: {
        addedMegabytes: Math.max(...memoryMegabytes),
        readMegabytes: result.bytesRead / MEGABYTE,
        ...{ closedAfter, refusedWrites, refusedCalls: result.refused },
      },
      series: { memoryMegabytes },
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
            ...['readMegabytes', 'closedAfter', 'refusedWrites'],
            overTime(rows),
          ],
        }),
      ],
    },
  ],

  claims(rows) {
    const of = (client: string, metric: string) => rows.find({ client })?.median(metric) ?? null
    const added = (client: string) => `${figure(of(client, 'addedMegabytes') ?? Number.NaN)} MB`
    const closed = (client: string) => {
      const after = of(client, 'closedAfter')
      return after === null
        ? 'did not close the client'
        : `closed the client after ${after.toFixed(2)} s`
    }
    return [
      `Replies that nobody reads took ${added('unlimited')} of the server's memory. client-output-buffer-limit ${closed('output-limit')}, at ${added('output-limit')}; maxmemory-clients ${closed('client-memory')}, at ${added('client-memory')}.`,
      `maxmemory alone does not limit them (${added('maxmemory')}). Other clients pay: ${percent(of('maxmemory', 'refusedWrites') ?? 0)} of their writes were refused.`,
      `A client that reads every reply at once still costs ${added('one-pipeline')} when it asks for everything in one pipeline, and ${added('pipelines')} in pipelines of ${PIPELINE_COMMANDS} commands.`,
      `Our store, which reads all that it asks for and has at most 1,000 calls in flight, took ${added('store')}, although its thread stopped in between. Called without restraint it took ${added('store-at-once')} and refused ${counted(of('store-at-once', 'refusedCalls') ?? 0, 'call')} at once.`,
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
  return levels.map((level) => blocks[Math.max(block(level), 0)]).join('')
}
