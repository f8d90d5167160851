import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { namesOption, numbersOption } from '../../drivers/redis/options.ts'
import { errors, range } from '../../reporting/columns.ts'
import { asCost, asRate, product } from '../../rounds/shape.ts'
import type { Experiment } from '../experiment.ts'
import { keys, moveKey, type Pair, startPair } from './slot-move.ts'
import { measureViews, NO_CLUSTER, startViews, type Views } from './views.ts'

const parts = ['views', 'slot-move'] as const

interface ClusterOptions {
  parts: (typeof parts)[number][]
  nodes: number[]
  inFlight: number[]
  clients: number
  partitions: number
  sessions: number[]
  queryBuffer: string
}

/** The servers of the chosen parts. */
interface Bench {
  /** By the number of nodes. */
  views: Map<number, Views>
  pair?: Pair
}

/** What page views and moves of slots cost a Redis Cluster. */
export const cluster: Experiment<ClusterOptions, Bench> = {
  name: 'cluster',
  title: 'Redis Cluster',
  summary: 'CPU time of a page view by nodes, and moves of slots',
  about: `
views      Records views on clusters of primaries (partitioned layout, append-only file on): 1,000 sessions, 1,000
           items by Zipf's law. Several clients in one process simulate several APIs, each with a connection to every
           node. Rates do not show the effect of more nodes, CPU time per view does: nodes share the work, but a
           batch of views is split between them. The first row is a single Redis without a cluster.
slot-move  A slot moves key by key, with MIGRATE, during which neither node serves other clients. A client of each
           node sends one PING after another; the longest shows how long the node was blocked. Redis refuses a
           payload above the target's client-query-buffer-limit (1 GB; Onetrip sets 64 MB).

Examples:
  npm run load -- cluster --parts views --nodes 1,3 --in-flight 16
  npm run load -- cluster --parts slot-move --query-buffer 64mb --sessions 1000000,5000000`,
  rounds: 3,
  duration: 2,
  quick: {
    rounds: 1,
    duration: 0.3,
    nodes: [1, 3],
    sessions: [10_000, 100_000],
  },
  configure(command) {
    const moved = [10_000, 100_000, 1_000_000, 5_000_000]
    command
      .addOption(namesOption('--parts <list>', parts, ['views']))
      .addOption(numbersOption('--nodes <list>', 'views: primaries', [1, 16], [1, 2, 3]))
      .addOption(
        numbersOption('--in-flight <list>', 'views: at a time per client', [1, 1_000], [1, 4, 16]),
      )
      .option('--clients <n>', 'views: number of clients', wholeNumber(1, 100), 8)
      .option('--partitions <n>', 'views: partitions', wholeNumber(1, 16_384), 64)
      .addOption(
        numbersOption('--sessions <list>', 'slot-move: sessions of a partition', [1, 2e7], moved),
      )
      .option('--query-buffer <size>', "slot-move: the target's client-query-buffer-limit", '1gb')
  },

  factors: [
    { name: 'part' },
    {
      name: 'nodes',
      text: (count) => (count === NO_CLUSTER ? 'no cluster' : String(count)),
    },
    { name: 'inFlight', label: 'views in flight' },
    { name: 'key' },
    { name: 'sessions' },
  ],
  subject: 'part',
  metrics: [
    { name: 'viewsPerSecond', label: 'views/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main threads CPU µs /view', ...asCost },
    { name: 'busiestMicros', label: 'of the busiest node', ...asCost },
    { name: 'otherCpuMicros', label: 'other threads CPU µs /view', ...asCost },
    { name: 'clientCpuMicros', label: 'client CPU µs /view', ...asCost },
    { name: 'batches', label: 'batches /view', format: 'fixed' },
    { name: 'commands', label: 'commands /view', format: 'fixed' },
    { name: 'bytesIn', label: 'bytes to Redis /view', format: 'whole' },
    { name: 'bytesOut', label: 'bytes from Redis /view', format: 'whole' },
    { name: 'megabytes', label: 'payload MB' },
    { name: 'sourceMs', label: 'source blocked ms' },
    { name: 'targetMs', label: 'target blocked ms' },
    { name: 'migrateMs', label: 'MIGRATE ms' },
    { name: 'restoreMs', label: 'RESTORE ms' },
  ],
  progress: ['mainCpuMicros', 'sourceMs'],

  async prepare(context, options) {
    const { parts, nodes, queryBuffer } = options
    const bench: Bench = { views: new Map() }
    for (const count of parts.includes('views') ? [NO_CLUSTER, ...nodes] : []) {
      bench.views.set(count, await startViews(context, count, options))
    }
    if (parts.includes('slot-move')) bench.pair = await startPair(context, queryBuffer)
    return bench
  },

  cases(_, { parts, nodes, inFlight, sessions }) {
    const all = {
      views: [
        { nodes: NO_CLUSTER, inFlight: Math.max(...inFlight) },
        ...product({ nodes, inFlight }),
      ],
      'slot-move': product({ key: Object.keys(keys), sessions }),
    }
    return parts.flatMap((part) => all[part].map((one) => ({ part, ...one })))
  },
  warmUp: (cases) =>
    cases.filter(
      ({ part, nodes }, index) =>
        part === 'views' && cases.findIndex((one) => one.nodes === nodes) === index,
    ),

  async measure(one, { views, pair }, { options, context: { signal } }) {
    const watched = views.get(Number(one.nodes))
    if (watched) {
      const inFlight = options.clients * Number(one.inFlight)
      return {
        values: await measureViews(watched, { inFlight, seconds: options.duration, signal }),
      }
    }
    if (pair) return await moveKey(pair, one, signal)
    throw new RangeError(`no servers for ${one.part}`)
  },

  sections: (rows) => [
    {
      title: 'CPU time and network traffic of a view',
      rows: rows.where({ part: 'views' }),
      caption: 'Per view, of all nodes together; medians of the rounds',
      factors: ['nodes', 'inFlight'],
      columns: [
        range('mainCpuMicros'),
        'busiestMicros',
        range('otherCpuMicros'),
        range('clientCpuMicros'),
        'batches',
        'commands',
        'bytesIn',
        'bytesOut',
      ],
    },
    {
      title: 'How long a move blocks the nodes',
      rows: rows.where({ part: 'slot-move' }),
      caption: 'One key moves with MIGRATE',
      factors: ['key', 'sessions'],
      columns: [
        'megabytes',
        range('sourceMs'),
        range('targetMs'),
        'migrateMs',
        'restoreMs',
        errors,
      ],
    },
  ],
}
