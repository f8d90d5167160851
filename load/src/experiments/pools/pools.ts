import { Option } from 'commander'
import { type LinkPlan, links, type OpenLink, openLink } from '../../drivers/redis/links.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { asCost, asLatency, asRate, type Metric, product } from '../../experiment/shape.ts'
import { type Column, metricText, sectionOf } from '../../reporting/columns.ts'
import { measureCalls } from '../store/calls.ts'

interface PoolsOptions {
  links: LinkPlan[]
  callers: number[]
  sizes: number[]
}

interface Bench {
  server: RedisServer
  opened: Map<string, OpenLink>
}

const strategies = ['batch', 'pipeline']

/** Shared connections, by their number. */
export const pools: Experiment<PoolsOptions, Bench> = {
  name: 'pools',
  title: 'Shared connections, by their number',
  summary: 'recordView over shared connections, by size of the pool',
  about: `
Callers in one process record views (five commands) without pause, each in its own session. By pool:
  batch      a pipeline for several callers (the store's default)
  pipeline   a pipeline of ioredis for each caller
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
    { name: 'callsPerSecond', label: 'calls/s', ...asRate },
    { name: 'p50', label: 'p50 ms', ...asLatency },
    { name: 'p99', label: 'p99 ms', ...asLatency },
    { name: 'clientCpuMicros', label: 'client CPU µs /call', ...asCost },
    { name: 'cpuMicros', label: 'Redis CPU µs /call', ...asCost },
  ],
  progress: ['callsPerSecond', 'p99'],
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
      pool: strategies,
      size: sizes.toSorted((a, b) => a - b),
    }),
  warmUp: (cases) =>
    [...Map.groupBy(cases, ({ pool }) => pool).values()].flatMap((all) => all.slice(0, 1)),

  async measure(one, { server, opened }, { options, context: { signal } }) {
    const { url } = opened.get(String(one.link)) as OpenLink
    const {
      mainCpuMicros: _,
      connectionsPerSecond: __,
      ...values
    } = await measureCalls(server, {
      url,
      strategy: String(one.pool),
      poolSize: Number(one.size),
      operation: 'record-view',
      concurrency: Number(one.callers),
      seconds: options.duration,
      signal,
    })
    return { values }
  },

  sections: (rows) => pools.metrics.map((metric) => bySize(rows, metric)),
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
