import { Option } from 'commander'
import { allStrategies } from '../../compared-strategies.ts'
import { type Age, ageOption } from '../../drivers/age.ts'
import {
  type LinkPlan,
  linkNames,
  links,
  type OpenLink,
  openLink,
} from '../../drivers/redis/links.ts'
import { namesOption, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { across, fromArticles, median, range, ratio } from '../../reporting/columns.ts'
import type { Result } from '../../rounds/result.ts'
import type { Rows } from '../../rounds/rows.ts'
import type { Section } from '../../rounds/section.ts'
import { asCost, asRate, type Case, product } from '../../rounds/shape.ts'
import type { Experiment } from '../experiment.ts'
import { measureCalls, measureInThread, type Operation, operations } from './calls.ts'

interface StoreOptions {
  operation: Operation
  strategies: string[]
  links: LinkPlan[]
  concurrency: number[]
  poolSizes: number[]
  ioThreads: number[]
  processes?: Age
}

/** By link and I/O threads. */
type Bench = Map<string, ServedLink>
type ServedLink = OpenLink & { server: RedisServer }

const keyOf = ({ link, ioThreads }: Case) => `${link} ${ioThreads}`

const RATE = 'callsPerSecond'

/** Below this rate, Redis's periodic work is a large part of its CPU time. */
const MIN_RATE_FOR_CPU = 100
const noCpu = { clientCpuMicros: null, cpuMicros: null, mainCpuMicros: null }

// Redis性能优化方案, table 4, in Python.
const tableFour: Readonly<Record<string, Record<'sequential' | 'pipeline', number>>> = {
  unix: { sequential: 3_761, pipeline: 6_394 },
  loopback: { sequential: 3_257, pipeline: 5_991 },
  switch: { sequential: 739, pipeline: 2_841 },
  vpn: { sequential: 3.67, pipeline: 18.2 },
}

/** `benchmark_update_token` of Redis in Action, for all strategies and links. */
export const store: Experiment<StoreOptions, Bench> = {
  name: 'store',
  title: 'The store alone, by strategy and link to Redis',
  summary: 'calls per second of the store, by strategy and link to Redis',
  about: `
Runs an operation of the store in a loop, by default one call at a time, over the links of the articles:
unix, loopback, switch (0.271 ms, 1 Gb/s) and vpn (48 ms, 1.8 Mb/s), or any other link, such as 5ms@100Mb/s. A
relay simulates distant links (npm run load -- relay --help). Its delay is adjusted so that a PING takes the round
trip time of the link.

With --concurrency, each call in flight has its own session, and items are viewed by Zipf's law. After each run, the
number of views is compared with those that Redis counted. With several --pool-sizes or --io-threads, each strategy
is compared with its own first setting.

Examples:
  npm run load -- store --operation record-view --concurrency 64 --links loopback
  npm run load -- store --operation pattern --strategies naive,sequential,pipeline,batch --links loopback,1ms@1Gb/s
  npm run load -- store --strategies batch --links loopback --concurrency 64,1000 --pool-sizes 1,2,4,8`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.1 },
  configure(command) {
    const operation = new Option(
      '--operation <name>',
      'writeSession (as in Redis in Action), recordView, or the view of examples/pattern',
    )
    const all = linkNames.join(',')
    const threads = "Redis's threads, including the main thread"
    command
      .addOption(operation.choices(operations).default('update-token'))
      .addOption(namesOption('--strategies <list>', allStrategies))
      .addOption(
        new Option(
          '--links <list>',
          `any of ${linkNames.join(', ')}, or others such as 5ms@100Mb/s`,
        )
          .argParser(links)
          .default(links(all), all),
      )
      .addOption(numbersOption('--concurrency <list>', 'calls in flight', [1, 1_000], [1]))
      .addOption(numbersOption('--pool-sizes <list>', 'connections of the pool', [1, 100], [1]))
      .addOption(numbersOption('--io-threads <list>', threads, [1, 64], [1]))
      .addOption(ageOption('a new thread for each run'))
  },

  factors: [
    { name: 'link' },
    { name: 'concurrency', label: 'callers' },
    { name: 'strategy' },
    { name: 'poolSize', label: 'connections' },
    { name: 'ioThreads', label: 'I/O threads' },
  ],
  subject: 'strategy',
  metrics: [
    { name: RATE, label: 'calls/s', ...asRate },
    { name: 'pingMs', label: 'PING ms' },
    { name: 'p50', label: 'p50 ms' },
    { name: 'p99', label: 'p99 ms' },
    { name: 'connectionsPerSecond', label: 'connections opened /s' },
    { name: 'clientCpuMicros', label: 'client CPU µs /call', ...asCost },
    { name: 'cpuMicros', label: 'Redis CPU µs /call', ...asCost },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /call' },
  ],
  progress: [RATE, 'p99'],
  /** Strategies are compared with `sequential`; pool sizes and I/O threads with the first setting. */
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
        const link = await context.step(`Opening a link: ${plan.name}`, () =>
          openLink(plan, server, context),
        )
        bench.set(keyOf({ link: plan.name, ioThreads }), { ...link, server })
      }
    }
    return bench
  },

  cases: (_, { links, concurrency, ioThreads, poolSizes, strategies }) =>
    product<Case>({
      link: links.map(({ name }) => name),
      concurrency,
      ioThreads,
      poolSize: poolSizes,
      strategy: strategies,
    }),

  warmUp: (cases, { processes }) => (processes === 'warm' ? cases : []),

  async measure(one, bench, { round, options, context: { signal } }) {
    const { server, url, pingMs } = bench.get(keyOf(one)) as ServedLink
    const measure = options.processes === 'fresh' ? measureInThread : measureCalls
    const calls = {
      url,
      isWarmUp: round === 0,
      operation: options.operation,
      concurrency: Number(one.concurrency),
      seconds: options.duration,
      strategy: String(one.strategy),
      poolSize: Number(one.poolSize),
    }
    const run = await measure(server, calls, signal)
    return { values: { pingMs, ...run, ...(run.callsPerSecond < MIN_RATE_FOR_CPU && noCpu) } }
  },

  sections: (rows, result) => [
    {
      title: 'Calls per second',
      caption: `${result.options.operation ?? 'record-view'}, callers: ${result.options.concurrency ?? result.options.callers}`,
      columns: [
        { head: 'PING ms', cell: (row) => row.median('pingMs')?.toPrecision(3) ?? '-' },
        range(RATE),
        ratio(RATE, hasSettings(rows) ? '× first' : '× sequential'),
        ...(isAsInArticles(rows, result)
          ? [fromArticles('articles calls/s', tableFour, 'link', 'strategy')]
          : []),
        'p50',
        'p99',
        range('clientCpuMicros'),
        range('cpuMicros'),
        range('mainCpuMicros'),
      ],
    },
    ...[RATE, 'p99', 'clientCpuMicros'].map((name) => bySize(rows, name)),
  ],
}

/** A table of one metric, with a column for each of several numbers of connections. */
function bySize(all: Rows, name: string): Section {
  const [first = 1, ...more] = all.values('poolSize')
  const heads = [first, ...more].map((size) => [`${size} connections`, { poolSize: size }])
  const { head, cell } = median(name)(all.shape)
  return {
    title: `By number of connections: ${head}`,
    rows: all.filter(({ case: { poolSize } }) => more.length > 0 && poolSize === first),
    caption: `${head}, by number of connections`,
    columns: across(all, Object.fromEntries(heads), { cell }),
  }
}

const hasSettings = (rows: Rows) =>
  rows.values('poolSize').length > 1 || rows.values('ioThreads').length > 1

/** Whether the options match the articles: writeSession, one call at a time over one connection. */
const isAsInArticles = (rows: Rows, { options }: Result) =>
  options.operation === 'update-token' && String(options.concurrency) === '1' && !hasSettings(rows)
