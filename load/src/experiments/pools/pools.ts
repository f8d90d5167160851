import type { Sender } from '@onetrip/session-store'
import { Option } from 'commander'
import { type LinkPlan, links, type OpenLink, openLink } from '../../drivers/redis/links.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure, withRatioRange } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { asCost, asLatency, asRate, type Metric, product } from '../../experiment/shape.ts'
import { type Column, metricText, sectionOf } from '../../reporting/columns.ts'
import { DEADLINE_MS, measureCalls } from '../store/calls.ts'
import { exclusivePool, type Target } from './exclusive.ts'

interface PoolsOptions {
  links: LinkPlan[]
  callers: number[]
  sizes: number[]
}

interface Bench {
  server: RedisServer
  opened: Map<string, OpenLink>
}

/** Undefined for a strategy of the store, which shares all connections. */
const kinds: Readonly<Record<string, ((target: Target) => Sender) | undefined>> = {
  batch: undefined,
  pipeline: undefined,
  exclusive: (target) => exclusivePool(target, 'wait'),
  overflow: (target) => exclusivePool(target, 'open'),
}

const RATE = 'callsPerSecond'
const OPENED = 'connectionsPerSecond'

/** Shared connections, and pools that lend each connection to one caller at a time. */
export const pools: Experiment<PoolsOptions, Bench> = {
  name: 'pools',
  title: 'Shared connections, and connections for one caller at a time',
  summary: 'recordView over shared and exclusive connections, by size of the pool',
  about: `
Callers in one process record views (five commands) without pause, each in its own session. By pool:
  batch      shared connections, and a pipeline for several callers (the store's default)
  pipeline   shared connections, and a pipeline of ioredis for each caller
  exclusive  a pool like that of Jedis: a caller borrows a connection for its pipeline, and waits if none is free
  overflow   like exclusive, but if none is free, the caller opens a connection and closes it after its pipeline.
             The source articles warn of that.
After each run, the number of views is compared with those that Redis counted.

Examples:
  npm run load -- pools --links loopback,1ms@1Gb/s --callers 64 --sizes 1,8,64`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.1 },
  configure(command) {
    const sizes = [1, 2, 4, 8, 16, 32, 64]
    command
      .addOption(
        new Option('--links <list>', 'loopback, unix, or distances such as 5ms@100Mb/s')
          .argParser(links)
          .default(links('loopback'), 'loopback'),
      )
      .addOption(numbersOption('--callers <list>', 'concurrent callers', [1, 1_000], [64, 1_000]))
      .addOption(numbersOption('--sizes <list>', 'connections of the pool', [1, 1_000], sizes))
  },

  factors: [
    { name: 'link' },
    { name: 'callers' },
    { name: 'pool' },
    { name: 'size', label: 'connections' },
  ],
  subject: 'pool',
  metrics: [
    { name: RATE, label: 'calls/s', ...asRate },
    { name: 'p50', label: 'p50 ms', ...asLatency },
    { name: 'p99', label: 'p99 ms', ...asLatency },
    { name: 'clientCpuMicros', label: 'client CPU µs /call', ...asCost },
    { name: 'cpuMicros', label: 'Redis CPU µs /call', ...asCost },
    { name: OPENED, label: 'connections opened /s', format: 'whole' },
  ],
  progress: [RATE, 'p99'],
  baseline: (_, [first]) => ({ pool: 'pipeline', size: first?.size ?? 1 }),

  async prepare(context, options) {
    const server = await context.startRedis({ build: 'patched' })
    const opened = new Map<string, OpenLink>()
    for (const plan of options.links) opened.set(plan.name, await openLink(plan, server, context))
    return { server, opened }
  },

  cases: (_, { links, callers, sizes }) =>
    product({
      link: links.map(({ name }) => name),
      callers,
      pool: Object.keys(kinds),
      size: sizes.toSorted((a, b) => a - b),
    }),
  warmUp: (cases) =>
    [...Map.groupBy(cases, ({ pool }) => pool).values()].flatMap((all) => all.slice(0, 1)),

  async measure(one, { server, opened }, { options, context: { signal } }) {
    const { url } = opened.get(String(one.link)) as OpenLink
    const [strategy, poolSize] = [String(one.pool), Number(one.size)]
    const { mainCpuMicros: _, ...values } = await measureCalls(server, {
      url,
      strategy,
      poolSize,
      sender: kinds[strategy]?.({ url, poolSize, deadlineMs: DEADLINE_MS }),
      operation: 'record-view',
      concurrency: Number(one.callers),
      seconds: options.duration,
      signal,
    })
    return { values }
  },

  sections: (rows) => pools.metrics.map((metric) => bySize(rows, metric)),
  claims: (rows) => rows.groups('pool', 'size').flatMap(({ rows: own }) => claimsOf(own)),
}

/** A table of one metric, with a column for each number of connections. */
function bySize(rows: Rows, metric: Metric): Section {
  const sizes = rows.values('size')
  const columns = sizes.map((size): Column => {
    return {
      head: counted(Number(size), 'connection'),
      cell({ case: one }) {
        const row = rows.find({ ...one, size })
        if (!row) return '-'
        const marks = row.doubts.map(({ mark }) => mark)
        return [metricText(metric, row.median(metric.name)), ...marks].join(' ')
      },
    }
  })
  return sectionOf(rows.where({ size: sizes[0] ?? 1 }), {
    title: `By number of connections: ${metric.label}`,
    caption: `${metric.label}, by number of connections`,
    columns,
  })
}

const fastest = ({ all }: Rows): Row | undefined =>
  all.toSorted((a, b) => (b.median(RATE) ?? 0) - (a.median(RATE) ?? 0))[0]

/** Of one link and number of callers. */
function claimsOf(rows: Rows): string[] {
  const shared = rows.where({ pool: 'batch' }).all
  const [batch, most] = [shared[0], shared.at(-1)]
  const lent = fastest(rows.where({ pool: 'exclusive' }))
  const opens = rows.all.findLast((row) => (row.median(OPENED) ?? 0) >= 1)
  const waits = opens && rows.find({ ...opens.case, pool: 'exclusive' })
  const times = (row: Row, base: Row | undefined, metric = RATE) =>
    withRatioRange(row.ratio(metric, base))
  const where = (row: Row) => `${row.text('callers')} callers over ${row.text('link')}`
  const size = (row: Row) => counted(Number(row.case.size), 'connection')
  return [
    batch && most && batch !== most
      ? `${where(batch)}: batch makes ${figure(batch.median(RATE) ?? 0)} calls/s with ${size(batch)}, and ${times(most, batch)} times as many with ${size(most)}.`
      : [],
    lent
      ? `${where(lent)}: exclusive is fastest with ${size(lent)}, and then makes ${times(lent, lent.baseline(rows))} times as many calls as pipeline with the fewest connections.`
      : [],
    opens && waits
      ? `${where(opens)}: overflow with ${size(opens)} opens ${figure(opens.median(OPENED) ?? 0)} more a second, makes ${times(opens, waits)} times as many calls as exclusive, and takes ${times(opens, waits, 'clientCpuMicros')} times the CPU time of the client and ${times(opens, waits, 'cpuMicros')} times that of Redis.`
      : [],
  ].flat()
}
