import { Problem } from '@onetrip/stack/problem.ts'
import { mostConnections, requireConnections } from '../../drivers/redis/limits.ts'
import { requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Case, Metric, Published } from '../../experiment/shape.ts'
import { bars, lines } from '../../reporting/charts.ts'
import {
  type Column,
  documented,
  errors,
  median,
  range,
  ratio,
  tableOf,
} from '../../reporting/columns.ts'
import { addOptions, type ShortConnectionsOptions } from './options.ts'
import { countSystemCallsOf, runLong, runShort, type Servers, startServers } from './runs.ts'
import { benchmarkArguments, isShape, runShape, shapes } from './shapes.ts'

interface Bench {
  servers: Servers
  idle: number[]
  /** Path of redis-benchmark; undefined unless it is needed. */
  benchmark: string | undefined
}

const SHORT = 'short'
const LONG = 'long'
const BESIDE = 'long beside short'
const tools = ['redis-benchmark', 'our generator'] as const

const apsara = 'Redis短连接性能优化 (ApsaraDB): redis-benchmark -k 0 -t get -n 100000 -c 8000'
const tencent = '张鹏义, Tencent Cloud: redis-benchmark -t ping -c 10000 -n 500000; Redis 4.0.10'

/** What it costs the server to open and close a connection for each command. */
export const shortConnections: Experiment<ShortConnectionsOptions, Bench> = {
  name: 'short-connections',
  title: 'Redis: short connections',
  summary: 'a new connection for each command, beside idle and long connections',
  group: 'Redis',
  about: `
Redis before version 5 searched the list of all its clients for each connection that it closed. The
documents made that a constant cost: +37 % with 8,000 short connections, +30 % with 10,000. The build
"baseline" has that search again, "stock" is today's Redis, "patched" is ours. The search is expensive
when many clients stay connected, hence the idle connections. redis-benchmark, which the documents used,
closes its oldest connection first, and there the search ends at once.

Clients connect from 200 loopback addresses, so that no port is needed twice within its minute of
TIME_WAIT, and in a network namespace of their own where the system allows one. The generator has one
thread. Where it limited the rate, the row is marked *: compare CPU per connection, not rates. System
calls are counted in runs of their own, beside the first number of idle connections only.

--shape runs redis-benchmark as the documents did, and our generator in the same way, instead:
  get-8000         redis-benchmark -k 0 -t get -n 100000 -c 8000
  ping-10000       redis-benchmark -k 0 -t ping_mbulk -n 500000 -c 10000 (minutes)
  ping-10000-kept  the same with -k 1: long connections

Examples:
  npm run load -- short-connections --quick
  npm run load -- short-connections --idle 0,10000 --transports tcp --io-threads 1,2
  npm run load -- short-connections --idle most --builds stock,patched
  npm run load -- short-connections --idle 9950 --maxclients 10000 --connections 25 --long 0
  npm run load -- short-connections --shape get-8000 --rounds 3`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.5, idle: [0, 10_000], transports: ['tcp'] },
  seconds: { quick: 15, usual: 90, full: 90 },
  configure: addOptions,
  isolated: ({ builds, shape }) => (shape ? [...builds, 'tools'] : builds),

  factors: [
    { name: 'load', label: 'load' },
    { name: 'tool', label: 'tool' },
    {
      name: 'transport',
      label: 'over',
      text: (value) => (value === 'tcp' ? 'TCP' : 'Unix socket'),
    },
    { name: 'idle', label: 'beside', text: (value) => `${value.toLocaleString('en-US')} idle` },
    { name: 'threads', label: 'I/O threads', text: (value) => counted(Number(value), 'thread') },
    { name: 'build', label: 'build' },
  ],
  subject: 'build',
  metrics: [
    metric('requestsPerSecond', 'requests/s', 'pace', 'higher', 0.1),
    metric('mainCpuMicros', 'main thread CPU µs /request', 'cpu', 'lower', 0.1),
    metric('cpuMicros', 'all threads CPU µs /request', 'cpu', 'lower', 0.1),
    metric('systemCalls', 'system calls /connection', 'count', 'lower', 0.05),
    { name: 'p50', label: 'p50 ms', unit: 'ms' },
    metric('p99', 'p99 ms', 'pace', 'lower', 0.01),
    { name: 'max', label: 'longest ms', unit: 'ms' },
  ],
  progress: ['requestsPerSecond', 'mainCpuMicros'],
  doubts: {
    generator: {
      mark: '*',
      text: "The generator was busy all the time, Redis was not: the rate is the generator's.",
    },
    rested: {
      mark: '‡',
      text: "Redis's main thread rested most of the time: the rate is that of the tool, of its search for a free port, or of SYNs sent again because Redis's backlog was full. Compare CPU times.",
    },
  },
  loadOptions: ['connections', 'long', 'maxclients', 'requests', 'clients'],
  baseline: () => ({ build: 'stock' }),

  async prepare(context, options) {
    const { builds, ioThreads, connections, long, maxclients, shape, requests, clients } = options
    if (!shape && (requests !== undefined || clients !== undefined)) {
      throw new Problem('--requests and --clients change what --shape runs: give that, too.')
    }
    const busy = shape
      ? Math.max(...shape.map((name) => clients ?? shapes[name].clients))
      : connections + long
    const most = (await mostConnections()) - busy
    const idle = shape
      ? [0]
      : [...new Set(options.idle.map((count) => (count === 'most' ? most : count)))]
    const atOnce = Math.max(...idle) + busy
    await requireConnections(atOnce)
    if (maxclients !== undefined && maxclients <= atOnce) {
      throw new Problem(
        `--maxclients ${maxclients} is too low for ${atOnce} connections and one that reads the figures: make it ${atOnce + 1} or more, or --idle, --connections or --long lower.`,
      )
    }
    const benchmark = shape && (await requireRedisBenchmark(context.signal))
    const wanted = ioThreads.flatMap((threads) =>
      idle.flatMap((count) => builds.map((build) => ({ build, threads, idle: count }))),
    )
    return { servers: await startServers(context, wanted, busy, maxclients), idle, benchmark }
  },

  cases({ idle }, { builds, ioThreads, transports, long, shape }) {
    if (shape) {
      return product({ load: shape, tool: tools, threads: ioThreads, build: builds })
    }
    const first = { transport: transports.slice(0, 1), idle: idle.slice(0, 1) }
    const threads = ioThreads.slice(0, 1)
    return [
      ...product({ load: [SHORT], transport: transports, threads: ioThreads, idle, build: builds }),
      ...(long > 0 ? product({ load: [LONG, BESIDE], ...first, threads, build: builds }) : []),
    ]
  },

  async measure(one, { servers, idle, benchmark }, { options, context, update }) {
    const { load, tool, transport } = one
    const { connections, long, duration: seconds } = options
    return await servers.use(one, async (server) => {
      const target = transport === 'unix' ? { socket: server.socket } : { port: server.port }
      const { signal } = context
      const onProgress = (rate: number) => update(`${figure(rate)}/s`)
      const run = { server, target, seconds, signal, onProgress }
      if (isShape(load)) {
        const program = tool === 'redis-benchmark' ? benchmark : undefined
        return await runShape(run, load, { ...options, program })
      }
      if (load !== SHORT) return await runLong(run, long, load === BESIDE ? connections : 0)
      const measured = await runShort(run, connections)
      if (one.idle !== idle[0]) return measured
      const calls = await countSystemCallsOf(run, connections)
      if (!calls) return measured
      const systemCalls = Object.values(calls).reduce((sum, count) => sum + count, 0)
      return {
        ...measured,
        values: { ...measured.values, systemCalls },
        details: { systemCalls: calls },
      }
    })
  },

  sections(rows, { options }) {
    const short = rows.where({ load: SHORT })
    const long = rows.filter(({ case: { load } }) => load === LONG || load === BESIDE)
    const ofShapes = rows.values('load').filter(isShape)
    const traced = short.filter((row) => row.median('systemCalls') !== null)
    const sections = [
      {
        title: 'Short connections',
        charts: charts(short),
        tables: [
          tableOf(short, {
            caption: `${options.connections} short connections at a time: connect, GET, read the reply, close`,
            columns: [
              range('mainCpuMicros', short, 'main thread CPU µs /connection'),
              ratio('mainCpuMicros', '× stock'),
              median('cpuMicros', short, 'all threads CPU µs /connection'),
              'systemCalls',
              range('requestsPerSecond', short, 'connections/s'),
              'p99',
              errors,
            ],
          }),
        ],
      },
      {
        title: 'Long connections meanwhile',
        tables: [
          tableOf(long, {
            caption: `${options.long} long connections, one GET after the other; alone, and beside ${options.connections} short ones`,
            columns: [
              range('requestsPerSecond', long, 'commands/s'),
              range('p50', long),
              range('p99', long),
              range('mainCpuMicros', long, 'main thread CPU µs /command'),
            ],
          }),
        ],
      },
      ...ofShapes.map((shape) => ({
        title: `The documents' ${shape}`,
        charts: charts(rows.where({ load: shape })),
        tables: [
          tableOf(rows.where({ load: shape }), {
            caption: `redis-benchmark ${benchmarkArguments(shape, options).join(' ')}, and the same by our generator`,
            columns: [
              range('requestsPerSecond', rows),
              ratio('requestsPerSecond', '× stock'),
              documented('requestsPerSecond', 'documents requests/s'),
              range('mainCpuMicros', rows),
              ratio('mainCpuMicros', 'CPU × stock'),
              'max',
              errors,
            ],
          }),
        ],
      })),
      {
        title: 'System calls of the main thread',
        pageOnly: true,
        tables: [
          tableOf(traced, {
            caption: 'System calls of the main thread per short connection, by name',
            columns: [median('systemCalls', traced, 'all'), ...callsByName(traced)],
          }),
        ],
      },
    ]
    return sections.filter(({ tables }) => tables.some((table) => table.rows.length > 0))
  },

  claims(rows) {
    const short = rows.where({ load: SHORT })
    const isCounted = short.all.some((row) => row.median('systemCalls') !== null)
    return [
      ...short
        .values('build')
        .toReversed()
        .flatMap((build) =>
          groupsOf(short).flatMap(({ rows: own }) => claimOf(own.where({ build }), own)),
        ),
      ...(short.all.length === 0 || isCounted
        ? []
        : ['System calls were not counted: strace is not here, or must not trace Redis.']),
    ]
  },

  published: [
    published('GET, O(N) search', 10_065, apsara, { load: 'get-8000', build: 'baseline' }),
    published('GET, O(1), +37 %', 13_824, apsara, { load: 'get-8000', build: 'stock' }),
    published('PING, -k 1 (long)', 93_580, tencent, { load: 'ping-10000-kept', build: 'stock' }),
    published('PING, -k 0, O(N) search', 16_472, tencent, {
      ...{ load: 'ping-10000', build: 'baseline' },
    }),
    published('PING, -k 0, O(1), +30 %', 21_455, tencent, { load: 'ping-10000', build: 'stock' }),
  ],
}

function metric(
  name: string,
  label: string,
  kind: NonNullable<Metric['kind']>,
  better: NonNullable<Metric['better']>,
  least: number,
): Metric {
  return { name, label, unit: label, kind, better, least }
}

function published(what: string, value: number, source: string, part: Partial<Case>): Published {
  const common = { metric: 'requestsPerSecond', unit: 'requests/s', source }
  return { ...common, what, value, case: { tool: 'redis-benchmark', ...part } }
}

/** A case for each combination of the values; those of the last factor change first. */
function product(values: Readonly<Record<string, readonly (string | number)[]>>): Case[] {
  return Object.entries(values).reduce<Case[]>(
    (cases, [name, list]) => cases.flatMap((one) => list.map((each) => ({ ...one, [name]: each }))),
    [{}],
  )
}

/** Rows that differ in nothing but the build and the idle connections beside. */
function groupsOf(rows: Rows): { name: string; rows: Rows }[] {
  const nameOf = (row: Row) =>
    ['tool', 'transport', 'threads'].flatMap((factor) => row.text(factor) || []).join(', ')
  return [...new Set(rows.all.map(nameOf))].map((name) => ({
    name,
    rows: rows.filter((row) => nameOf(row) === name),
  }))
}

const charts = (rows: Rows) =>
  groupsOf(rows).map(({ name, rows: own }) => {
    const title = `${name}: main thread CPU per request`
    return own.values('idle').length > 1
      ? lines(own, { metric: 'mainCpuMicros', over: 'idle', title })
      : bars(own, 'mainCpuMicros', title)
  })

/** A column for each of those that matter, as the first traced run counted them. */
function callsByName(rows: Rows): Column[] {
  const callsOf = (row: Row) => {
    const traced = row.samples.find(({ details }) => details?.systemCalls)
    return (traced?.details?.systemCalls ?? {}) as Readonly<Record<string, number>>
  }
  const names = new Set(rows.all.flatMap((row) => Object.keys(callsOf(row))))
  return [...names]
    .filter((name) => rows.all.some((row) => (callsOf(row)[name] ?? 0) >= 0.01))
    .map((name) => ({ head: name, cell: (row) => figure(callsOf(row)[name] ?? 0) }))
}

/** What a build makes of a short connection, of `rows` with all builds. */
function claimOf({ all }: Rows, rows: Rows): string[] {
  const [first] = all
  const ratios = all.flatMap((row) => row.ratio('mainCpuMicros', row.baseline(rows))?.median ?? [])
  if (!first || ratios.length === 0) return []
  const times = extremes(ratios).map(figure).join(' to ')
  const idle = extremes(all.map((row) => Number(row.case.idle)))
  const beside = idle.map((count) => count.toLocaleString('en-US')).join(' to ')
  const over = first.case.transport === 'unix' ? 'a Unix socket' : 'TCP'
  const threads = first.case.threads === 1 ? '' : ` with ${first.case.threads} I/O threads`
  const [calls, stock] = [first, first.baseline(rows)].map((row) =>
    figure(row?.median('systemCalls') ?? Number.NaN),
  )
  const fewer = calls === stock ? '' : `, with ${calls} system calls instead of ${stock}`
  return [
    `Over ${over}${threads}, a short connection costs the main thread of ${first.subject} ${times} times the CPU time of stock's, beside ${beside} idle connections${fewer}.`,
  ]
}

/** The lowest and the highest value, or the only one. */
const extremes = (values: readonly number[]) => [
  ...new Set([Math.min(...values), Math.max(...values)]),
]
