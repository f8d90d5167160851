import { type StrategyName, strategyNames } from '@onetrip/session-store'
import { listOf, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Option } from 'commander'
import {
  describeLink,
  type LinkPlan,
  linkNames,
  links,
  type OpenLink,
  openLink,
} from '../../drivers/redis/links.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import type { Case, Published } from '../../experiment/shape.ts'
import type { Summary } from '../../experiment/statistics.ts'
import { bars, lines } from '../../reporting/charts.ts'
import { type Column, documented, range, ratio, tableOf } from '../../reporting/columns.ts'
import { measureCalls, type Operation, operations } from './calls.ts'

interface StoreOptions {
  operation: Operation
  strategies: StrategyName[]
  links: LinkPlan[]
  concurrency: number
  items?: number
  poolSizes: number[]
  ioThreads: number[]
}

interface Bench {
  servers: Map<number, RedisServer>
  /** By link and I/O threads of the Redis at its end. */
  open: Map<string, OpenLink>
}

type Value = string | number | undefined
const linkKey = (link: Value, ioThreads: Value) => `${link} ${ioThreads}`
const RATE = 'callsPerSecond'

const cpu = { kind: 'cpu', better: 'lower', least: 1 } as const

/** Below this rate Redis's own periodic work is a large part of its CPU time. */
const MIN_RATE_FOR_CPU = 100

/** The documents' `benchmark_update_token`, for every strategy and link. */
export const store: Experiment<StoreOptions, Bench> = {
  name: 'store',
  title: 'The store alone, by strategy and link to Redis',
  summary: "calls per second of the store's updateToken, by strategy and link to Redis",
  group: 'The store',
  about: `
It calls the function again and again for a given time: one call at a time, as the documents do, or
--concurrency of them. Over the links of the documents:
  unix       Unix socket
  loopback   TCP on this machine
  switch     0.271 ms, 1 Gb/s
  vpn        48 ms, 1.8 Mb/s
or any other, as 5ms@100Mb/s. Distant links are simulated by a relay (npm run load -- relay --help),
set so that a PING takes the time of the link; what it took is shown.

A call sends 5 commands. With one call at a time there are one session and one item, as in the documents;
with more, each has a session of its own, and items are drawn from 1,000, few of them often. After each
run the counts in Redis are compared with the calls that were made.

With several --pool-sizes or --io-threads each strategy is compared with its own first setting.

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
    command
      .addOption(
        new Option('--operation <name>', "updateToken (the documents') or recordView")
          .choices(operations)
          .default('update-token'),
      )
      .addOption(
        new Option('--strategies <list>', `out of ${strategyNames.join(', ')}`)
          .argParser(listOf(strategyNames))
          .default([...strategyNames], 'all'),
      )
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
      .addOption(numbersOption('--pool-sizes <list>', 'connections of the pool', settings(100)))
      .addOption(
        numbersOption('--io-threads <list>', 'of Redis, its main thread included', settings(64)),
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
    { ...metric(RATE, 'calls/s'), kind: 'pace', better: 'higher', least: 0.1 },
    metric('calls', 'calls'),
    { name: 'pingMs', label: 'PING ms', unit: 'ms' },
    { name: 'p50', label: 'p50 ms', unit: 'ms' },
    { name: 'p99', label: 'p99 ms', unit: 'ms' },
    { name: 'max', label: 'longest ms', unit: 'ms' },
    { ...metric('clientCpuMicros', 'client CPU µs /call'), ...cpu },
    { ...metric('redisCpuMicros', 'Redis CPU µs /call'), ...cpu },
    metric('redisMainCpuMicros', 'main thread CPU µs /call'),
  ],
  progress: [RATE, 'p99'],
  loadOptions: ['operation', 'concurrency', 'items'],
  /** Of strategies, one round trip per command; of pools or threads, the same strategy with the first. */
  baseline({ strategy }, cases) {
    const [first] = cases
    if (!first) return null
    const { poolSize = 1, ioThreads = 1 } = first
    if (cases.some((one) => one.poolSize !== poolSize || one.ioThreads !== ioThreads)) {
      return { strategy: strategy ?? '', poolSize, ioThreads }
    }
    const isMeasured = cases.some((one) => one.strategy === 'sequential')
    return { strategy: isMeasured ? 'sequential' : (first.strategy ?? '') }
  },

  async prepare(context, options) {
    const bench: Bench = { servers: new Map(), open: new Map() }
    for (const count of options.ioThreads) {
      const config = { 'io-threads': String(count) }
      const server = await context.startRedis({ build: 'patched', config })
      bench.servers.set(count, server)
      for (const plan of options.links) {
        const link = await context.step(`Opening a link: ${describeLink(plan)}`, () =>
          openLink(plan, server, context),
        )
        bench.open.set(linkKey(plan.name, count), link)
      }
    }
    return bench
  },

  cases: (_, { links, ioThreads, poolSizes, strategies }) =>
    links.flatMap(({ name: link }) =>
      ioThreads.flatMap((ioThreads) =>
        poolSizes.flatMap((poolSize) =>
          strategies.map((strategy) => ({ link, strategy, poolSize, ioThreads })),
        ),
      ),
    ),

  async measure({ link, strategy, poolSize, ioThreads }, bench, { options, context }) {
    const server = bench.servers.get(Number(ioThreads))
    const open = bench.open.get(linkKey(link, ioThreads))
    if (!server || !open) throw new RangeError(`no link ${link}, or no Redis`)
    const { operation, concurrency, duration } = options
    const run = await measureCalls({
      ...{ server, url: open.url, operation, concurrency, seconds: duration },
      strategy: strategy as StrategyName,
      poolSize: Number(poolSize),
      items: options.items ?? (concurrency === 1 ? 1 : 1_000),
      signal: context.signal,
    })
    const noCpu = { clientCpuMicros: null, redisCpuMicros: null, redisMainCpuMicros: null }
    const isSlow = run.callsPerSecond < MIN_RATE_FOR_CPU
    return { values: { pingMs: open.pingMs, ...run, ...(isSlow && noCpu) } }
  },

  sections: (rows, result) => [
    ...tableFour(rows, result),
    ...rows.by('link').map(({ rows: own }) => linkSection(own, result)),
  ],
  claims: (rows, result) => [
    ...(isAsDocumented(rows, result) ? pipelineClaims(rows) : []),
    ...(hasSettings(rows) ? settingClaims(rows) : []),
    ...(rows.all.some((row) => row.median('redisCpuMicros') === null)
      ? [
          `No CPU time is shown below ${MIN_RATE_FOR_CPU} calls/s: most of it would be Redis's own periodic work.`,
        ]
      : []),
  ],
  published: [
    ...published('unix', 3_761, 6_394),
    ...published('loopback', 3_257, 5_991),
    ...published('switch', 739, 2_841),
    ...published('vpn', 3.67, 18.2),
  ],
}

function metric(name: string, label: string) {
  return { name, label, unit: label }
}

function settings(max: number) {
  return { min: 1, max, defaults: [1] }
}

function published(link: string, sequential: number, pipeline: number): Published[] {
  return Object.entries({ sequential, pipeline }).map(([strategy, value]) => ({
    ...{ what: `${link}, ${strategy}`, value, unit: 'calls/s', metric: RATE },
    source: 'Redis性能优化方案, table 4: update_token and update_token_pipeline, in Python',
    case: { link, strategy },
  }))
}

const hasSettings = (rows: Rows) =>
  rows.values('poolSize').length > 1 || rows.values('ioThreads').length > 1

/** Whether it is what the documents measured: updateToken, one call at a time over one connection. */
function isAsDocumented(rows: Rows, { options }: Result): boolean {
  return options.operation === 'update-token' && options.concurrency === 1 && !hasSettings(rows)
}

const documentedRate = ({ case: one }: Row): number | null =>
  store.published?.find(
    ({ case: theirs }) => theirs?.link === one.link && theirs?.strategy === one.strategy,
  )?.value ?? null

/** What the two strategies of table 4 did over each link that has both. */
function pairs(rows: Rows): { pipeline: Row; sequential: Row; documents: number | null }[] {
  return rows.where({ strategy: 'pipeline' }).all.flatMap((pipeline) => {
    const sequential = rows.find({ ...pipeline.case, strategy: 'sequential' })
    if (!sequential) return []
    const [more, less] = [documentedRate(pipeline), documentedRate(sequential)]
    return [{ pipeline, sequential, documents: more && less && more / less }]
  })
}

/** A line for each link, ours beside the documents'. */
function tableFour(rows: Rows, result: Result): Section[] {
  const compared = pairs(rows)
  if (compared.length === 0 || !isAsDocumented(rows, result)) return []
  const of = (strategy: string, column: Column): Column => ({
    ...column,
    cell(row) {
      const other = rows.find({ ...row.case, strategy } as Case)
      return other ? column.cell(other, rows) : '-'
    },
  })
  const ratioOf = (row: Row) => compared.find(({ pipeline }) => pipeline === row)?.documents ?? null
  const table = tableOf(
    rows.filter((row) => compared.some(({ pipeline }) => pipeline === row)),
    {
      caption: "updateToken, calls per second of one caller: ours and the documents' (table 4)",
      factors: ['link'],
      columns: [
        { head: 'PING ms', cell: pingText },
        of('sequential', range(RATE, rows, 'sequential')),
        of('pipeline', range(RATE, rows, 'pipeline')),
        of('pipeline', ratio(RATE, 'ratio')),
        of('sequential', documented(RATE, 'documents: sequential')),
        of('pipeline', documented(RATE, 'documents: pipeline')),
        { head: 'documents: ratio', cell: (row) => ratioOf(row)?.toFixed(1) ?? '' },
      ],
    },
  )
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
  const [first] = rows.all
  const name = first?.text('link') ?? ''
  const [plan] = links(name)
  const title = plan ? describeLink(plan) : name
  const calls = options.concurrency === 1 ? 'one call' : `${options.concurrency} calls`
  const several = hasSettings(rows)
  return {
    title,
    charts: several
      ? rows.by('ioThreads').map(({ value, rows: own }) =>
          lines(own, {
            metric: RATE,
            over: 'poolSize',
            title: `${name}, calls per second by connections, I/O threads: ${value}`,
          }),
        )
      : [bars(rows, RATE, `${name}, calls per second by strategy`)],
    tables: [
      tableOf(rows, {
        caption: `${title} (PING: ${first ? pingText(first) : '-'} ms); ${options.operation}, ${calls} at a time`,
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
  return pairs(rows).flatMap(({ pipeline, sequential, documents }) => {
    const ours = pipeline.ratio(RATE, sequential)
    if (!ours) return []
    const theirs = documents ? ` (documents: ${documents.toFixed(1)})` : ''
    return [
      `Over ${pipeline.text('link')}, a pipeline makes ${inRounds(ours)} times as many calls per second as one round trip per command${theirs}.`,
    ]
  })
}

/** Whether another number of connections or threads did better than the first. */
function settingClaims(rows: Rows): string[] {
  return rows.by('link').flatMap(({ rows: link }) =>
    link.by('strategy').flatMap(({ rows: own }) => {
      const rate = (row: Row) => row.median(RATE) ?? 0
      const [best] = own.all.toSorted((a, b) => rate(b) - rate(a))
      if (!best) return []
      const gain = best.ratio(RATE, best.baseline(own))
      const [connections, threads] = [Number(best.case.poolSize), Number(best.case.ioThreads)]
      const setting = `${counted(connections, 'connection')} and ${counted(threads, 'I/O thread')}`
      const compared = gain ? `${inRounds(gain)} times the first setting` : 'the first setting'
      return [
        `Over ${best.text('link')}, ${best.subject} makes most calls with ${setting}: ${compared}.`,
      ]
    }),
  )
}

function inRounds({ median, min, max }: Summary): string {
  const range = min === max ? '' : ` (${figure(min)} to ${figure(max)} round by round)`
  return `${figure(median)}${range}`
}
