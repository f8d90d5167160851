import { type StrategyName, strategyNames } from '@onetrip/session-store'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Option } from 'commander'
import {
  describeLink,
  type LinkPlan,
  linkNames,
  links,
  type OpenLink,
  openLink,
} from '../../drivers/redis/links.ts'
import { namesOption, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { withRange } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { asCpu, asRate, type Case, product } from '../../experiment/shape.ts'
import { bars, lines } from '../../reporting/charts.ts'
import { type Column, documented, range, ratio, tableOf } from '../../reporting/columns.ts'
import { measureCalls, operations } from './calls.ts'

interface StoreOptions {
  operation: (typeof operations)[number]
  strategies: StrategyName[]
  links: LinkPlan[]
  concurrency: number
  items?: number
  poolSizes: number[]
  ioThreads: number[]
}

/** By link and I/O threads. */
type Bench = Map<string, OpenLink & { server: RedisServer }>

const keyOf = ({ link, ioThreads }: Case) => `${link} ${ioThreads}`

const RATE = 'callsPerSecond'

/** Below this rate Redis's own periodic work is a large part of its CPU time. */
const MIN_RATE_FOR_CPU = 100
const noCpu = { clientCpuMicros: null, redisCpuMicros: null, redisMainCpuMicros: null }

/** Calls per second in the documents: `update_token`, and `update_token_pipeline`. */
const tableFour: Readonly<Record<string, readonly [sequential: number, pipeline: number]>> = {
  unix: [3_761, 6_394],
  loopback: [3_257, 5_991],
  switch: [739, 2_841],
  vpn: [3.67, 18.2],
}

/** The documents' `benchmark_update_token`, for every strategy and link. */
export const store: Experiment<StoreOptions, Bench> = {
  name: 'store',
  title: 'The store alone, by strategy and link to Redis',
  summary: "calls per second of the store's updateToken, by strategy and link to Redis",
  group: 'The store',
  about: `
Calls the function again and again for a given time, one call at a time as the documents do, over their links:
  unix       Unix socket
  loopback   TCP on this machine
  switch     0.271 ms, 1 Gb/s
  vpn        48 ms, 1.8 Mb/s
or any other, such as 5ms@100Mb/s. A relay simulates distant links (npm run load -- relay --help), set so
that a PING takes the time of the link.

With --concurrency, each call in flight has a session of its own. After each run the views that Redis counted
are compared with the calls. With several --pool-sizes or --io-threads each strategy is compared with its
own first setting.

Examples:
  npm run load -- store
  npm run load -- store --quick --links unix,switch
  npm run load -- store --operation record-view --concurrency 64 --links loopback
  npm run load -- store --strategies batch --links loopback --concurrency 64 --pool-sizes 1,2,4,8 --io-threads 1,2`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.1 },
  seconds: { quick: 15, usual: 110, full: 110 },
  configure(command) {
    const defaults = [1]
    command
      .addOption(
        new Option('--operation <name>', "updateToken (the documents') or recordView")
          .choices(operations)
          .default('update-token'),
      )
      .addOption(namesOption('--strategies <list>', strategyNames))
      .addOption(
        new Option('--links <list>', `out of ${linkNames.join(', ')}, or like 5ms@100Mb/s`)
          .argParser(links)
          .default(links(linkNames.join(',')), linkNames.join(',')),
      )
      .option('--concurrency <n>', 'calls in flight at the same time', wholeNumber(1, 1_000), 1)
      .option(
        '--items <n>',
        'items that are viewed (default: 1, or 1000 with several calls in flight)',
        wholeNumber(1, 1_000),
      )
      .addOption(
        numbersOption('--pool-sizes <list>', 'connections of the pool', {
          ...{ min: 1, max: 100, defaults },
        }),
      )
      .addOption(
        numbersOption('--io-threads <list>', 'of Redis, its main thread included', {
          ...{ min: 1, max: 64, defaults },
        }),
      )
  },

  factors: [
    { name: 'link', label: 'link' },
    { name: 'strategy', label: 'strategy' },
    { name: 'poolSize', label: 'connections' },
    { name: 'ioThreads', label: 'I/O threads' },
  ],
  subject: 'strategy',
  metrics: [
    { name: RATE, label: 'calls/s', ...asRate },
    { name: 'pingMs', label: 'PING ms' },
    { name: 'p50', label: 'p50 ms' },
    { name: 'p99', label: 'p99 ms' },
    { name: 'clientCpuMicros', label: 'client CPU µs /call', ...asCpu },
    { name: 'redisCpuMicros', label: 'Redis CPU µs /call', ...asCpu },
    { name: 'redisMainCpuMicros', label: 'main thread CPU µs /call' },
  ],
  progress: [RATE, 'p99'],
  loadOptions: ['operation', 'concurrency', 'items'],
  /** Of strategies, one round trip per command; of pools or threads, the same strategy with the first. */
  baseline(_, cases) {
    const [{ poolSize = 1, ioThreads = 1, strategy = '' } = {}] = cases
    if (cases.some((one) => one.poolSize !== poolSize || one.ioThreads !== ioThreads)) {
      return { poolSize, ioThreads }
    }
    const hasSequential = cases.some((one) => one.strategy === 'sequential')
    return { strategy: hasSequential ? 'sequential' : strategy }
  },

  async prepare(context, options) {
    const bench: Bench = new Map()
    for (const ioThreads of options.ioThreads) {
      const config = { 'io-threads': String(ioThreads) }
      const server = await context.startRedis({ build: 'patched', config })
      for (const plan of options.links) {
        const link = await context.step(`Opening a link: ${describeLink(plan)}`, () =>
          openLink(plan, server, context),
        )
        bench.set(keyOf({ link: plan.name, ioThreads }), { ...link, server })
      }
    }
    return bench
  },

  cases: (_, { links, ioThreads, poolSizes, strategies }) =>
    product<Case>({
      link: links.map(({ name }) => name),
      ...{ ioThreads, poolSize: poolSizes, strategy: strategies },
    }),

  async measure(one, bench, { options, context: { signal } }) {
    const open = bench.get(keyOf(one))
    if (!open) throw new RangeError(`no link ${keyOf(one)}`)
    const { server, url, pingMs } = open
    const { operation, concurrency, duration: seconds } = options
    const run = await measureCalls({
      ...{ server, url, operation, concurrency, seconds, signal },
      strategy: one.strategy as StrategyName,
      poolSize: Number(one.poolSize),
      items: options.items ?? (concurrency === 1 ? 1 : 1_000),
    })
    return { values: { pingMs, ...run, ...(run.callsPerSecond < MIN_RATE_FOR_CPU && noCpu) } }
  },

  sections: (rows, result) => [
    ...(isAsDocumented(rows, result) ? besideTableFour(rows) : []),
    ...rows.by('link').map(({ rows: own }) => linkSection(own, result)),
  ],
  claims: (rows, result) => [
    ...(isAsDocumented(rows, result) ? pipelineClaims(rows) : []),
    rows.all.some((row) => row.median('redisCpuMicros') === null) &&
      `No CPU time is shown below ${MIN_RATE_FOR_CPU} calls/s: most of it would be Redis's own periodic work.`,
  ],
  published: Object.entries(tableFour).flatMap(([link, [sequential, pipeline]]) =>
    Object.entries({ sequential, pipeline }).map(([strategy, value]) => ({
      ...{ what: `${link}, ${strategy}`, value, unit: 'calls/s', metric: RATE },
      source: 'Redis性能优化方案, table 4: update_token and update_token_pipeline, in Python',
      case: { link, strategy },
    })),
  ),
}

const hasSettings = (rows: Rows) =>
  rows.values('poolSize').length > 1 || rows.values('ioThreads').length > 1

/** Whether it is what the documents measured: updateToken, one call at a time over one connection. */
const isAsDocumented = (rows: Rows, { options }: Result) =>
  options.operation === 'update-token' && options.concurrency === 1 && !hasSettings(rows)

/** How many times as many calls the documents' pipeline makes: `3.8`; empty over other links. */
function documentedRatio({ case: { link } }: Row): string {
  const [sequential, pipeline] = tableFour[String(link)] ?? []
  return sequential && pipeline ? (pipeline / sequential).toFixed(1) : ''
}

/** The row of the other strategy of table 4 over the same link. */
const sequentialOf = (pipeline: Row, rows: Rows) =>
  rows.find({ ...pipeline.case, strategy: 'sequential' })

/** A line for each link that has both strategies of table 4. */
function besideTableFour(rows: Rows): Section[] {
  const pipelines = rows
    .where({ strategy: 'pipeline' })
    .filter((row) => sequentialOf(row, rows) !== undefined)
  if (pipelines.all.length === 0) return []
  const sequential = (column: Column): Column => ({
    ...column,
    cell: (row) => column.cell(sequentialOf(row, rows) ?? row, rows),
  })
  const multiple = ratio(RATE, 'ratio')
  const table = tableOf(pipelines, {
    caption: "updateToken, calls per second of one caller: ours and the documents' (table 4)",
    factors: ['link'],
    columns: [
      { head: 'PING ms', cell: pingText },
      sequential(range(RATE, rows, 'sequential')),
      range(RATE, rows, 'pipeline'),
      { ...multiple, cell: (row) => multiple.cell(row, rows) },
      sequential(documented(RATE, 'documents: sequential')),
      documented(RATE, 'documents: pipeline'),
      { head: 'documents: ratio', cell: documentedRatio },
    ],
  })
  const chart = lines(rows, {
    ...{ metric: RATE, over: 'link', logarithmic: true },
    title: 'Calls per second of one caller, by link',
  })
  return [{ title: "Beside the documents' table 4", charts: [chart], tables: [table] }]
}

/** Significant digits: a PING takes from 0.015 to 48 ms. */
const pingText = (row: Row) => String(Number(row.median('pingMs')?.toPrecision(3)))

/** Everything over one link. */
function linkSection(rows: Rows, { options }: Result): Section {
  const name = String(rows.values('link')[0])
  const title = links(name).map(describeLink).join()
  const pings = rows.all.slice(0, 1).map(pingText)
  const calls = options.concurrency === 1 ? 'one call' : `${options.concurrency} calls`
  const several = hasSettings(rows)
  return {
    title,
    charts: several
      ? rows.by('ioThreads').map(({ value, rows: own }) =>
          lines(own, {
            ...{ metric: RATE, over: 'poolSize' },
            title: `${name}, calls per second by connections, I/O threads: ${value}`,
          }),
        )
      : [bars(rows, RATE, `${name}, calls per second by strategy`)],
    tables: [
      tableOf(rows, {
        caption: `${title} (PING: ${pings} ms); ${options.operation}, ${calls} at a time`,
        columns: [
          range(RATE, rows),
          ratio(RATE, several ? '× first' : '× sequential'),
          ...['p50', 'p99', 'clientCpuMicros', 'redisCpuMicros', 'redisMainCpuMicros'],
        ],
      }),
    ],
  }
}

function pipelineClaims(rows: Rows): string[] {
  return rows.where({ strategy: 'pipeline' }).all.flatMap((row) => {
    const ours = row.ratio(RATE, sequentialOf(row, rows))
    if (!ours) return []
    const theirs = documentedRatio(row)
    const documents = theirs && ` (documents: ${theirs})`
    return [
      `Over ${row.text('link')}, a pipeline makes ${withRange(ours)} times as many calls per second as one round trip per command${documents}.`,
    ]
  })
}
