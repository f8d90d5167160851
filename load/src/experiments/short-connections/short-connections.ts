import { type Transport, transports } from '@onetrip/stack/address.ts'
import { listOf, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { InvalidArgumentError, Option } from 'commander'
import { sum } from 'simple-statistics'
import { limitedByGenerator, measureLoad } from '../../drivers/redis/cost.ts'
import { generateLoad, type LoadOptions } from '../../drivers/redis/generator/load.ts'
import { mostConnections, requireConnections } from '../../drivers/redis/limits.ts'
import {
  addBuilds,
  type BuildsOptions,
  namesOption,
  numbersOption,
} from '../../drivers/redis/options.ts'
import { requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import { countSystemCalls, type SystemCalls } from '../../drivers/redis/system-calls.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted } from '../../experiment/figures.ts'
import { asCount, asCpu, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import { BESIDE, claimsOf, LONG, SHORT, sectionsOf } from './report.ts'
import { type Fewer, isShape, runShape, type Shape, shapeNames, shapeOf } from './shapes.ts'

interface ShortConnectionsOptions extends BuildsOptions, Fewer {
  idle: (number | 'most')[]
  transports: Transport[]
  ioThreads: number[]
  connections: number
  long: number
  maxclients?: number
  shape?: Shape[]
}

interface Bench {
  serverOf: (one: Case) => RedisServer
  idle: number[]
  /** Path of redis-benchmark; undefined unless it is needed. */
  benchmark: string | undefined
}

const BENCHMARK = 'redis-benchmark'
const MAX_IDLE = 1_000_000

const apsara = {
  ...{ metric: 'requestsPerSecond', unit: 'requests/s' },
  source: 'Redis短连接性能优化 (ApsaraDB): redis-benchmark -k 0 -t get -n 100000 -c 8000',
}
const tencent = {
  ...apsara,
  source: '张鹏义, Tencent Cloud: redis-benchmark -t ping -c 10000 -n 500000; Redis 4.0.10',
}
const of = (load: Shape, build: string) => ({ case: { load, build, tool: BENCHMARK } })

/** What it costs the server to open and close a connection for each command. */
export const shortConnections: Experiment<ShortConnectionsOptions, Bench> = {
  name: 'short-connections',
  title: 'Redis: short connections',
  detail({ options }) {
    const { shape, ioThreads } = options as unknown as ShortConnectionsOptions
    if (shape) return `shape ${[shape].flat().join(', ')}`
    return Math.max(...ioThreads) > 1 ? `I/O threads ${ioThreads.join(', ')}` : ''
  },
  summary: 'a new connection for each command, beside idle and long connections',
  group: 'Redis',
  about: `
Before version 5, Redis searched the list of all its clients for each connection that it closed. The
documents made that a constant cost: +37 % with 8,000 short connections, +30 % with 10,000. The build
"baseline" has that search again, "stock" is today's Redis, "patched" is ours. The search is expensive
when many clients stay connected, hence the idle connections.

Clients connect from 200 loopback addresses, since a closed connection keeps its port for a minute, and
in a network namespace of their own where the system allows one. Where the generator (one thread) was
the limit, marked *, compare CPU per connection, not rates. System calls are counted in runs of their
own, beside the first number of idle connections.

--shape makes the documents' calls of redis-benchmark, and the same with our generator, instead.
redis-benchmark closes its oldest connection first, which the search finds at once.
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
  configure(command) {
    addBuilds(command, ['baseline', 'stock', 'patched'])
    const threads = { min: 1, max: 128, defaults: [1] }
    command
      .addOption(
        new Option('--idle <list>', 'idle connections; "most": as many as there can be')
          .argParser(idleNumbers)
          .default([0, 1_000, 10_000], '0,1000,10000'),
      )
      .addOption(namesOption('--transports <list>', transports))
      .addOption(
        numbersOption('--io-threads <list>', "Redis's threads, its main one included", threads),
      )
      .option('--connections <n>', 'short ones at the same time', wholeNumber(1, 100_000), 50)
      .option('--long <n>', 'long ones, alone and beside short ones', wholeNumber(0, 10_000), 20)
      .option(
        '--maxclients <n>',
        'of Redis (default: with room for all connections twice)',
        wholeNumber(1, MAX_IDLE),
      )
      .addOption(
        new Option(
          '--shape <list>',
          `the documents' runs instead, out of ${shapeNames.join(', ')}`,
        ).argParser(listOf(shapeNames)),
      )
      .option('--requests <n>', 'with --shape: fewer than the documents', wholeNumber(1, 1e9))
      .option('--clients <n>', 'likewise', wholeNumber(1, 100_000))
  },
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
    { name: 'requestsPerSecond', label: 'requests/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /request', ...asCpu, least: 0.1 },
    { name: 'cpuMicros', label: 'all threads CPU µs /request', ...asCpu, least: 0.1 },
    { name: 'systemCalls', label: 'system calls /connection', ...asCount },
    { name: 'p50', label: 'p50 ms' },
    { name: 'p99', label: 'p99 ms', ...asLatency },
    { name: 'max', label: 'longest ms' },
  ],
  progress: ['requestsPerSecond', 'mainCpuMicros'],
  doubts: {
    generator: limitedByGenerator,
    rested: {
      mark: '‡',
      text: "Redis's main thread rested most of the time: the rate is that of the tool, of its search for a free port, or of SYNs sent again because Redis's backlog was full. Compare CPU times.",
    },
  },
  loadOptions: ['connections', 'long', 'maxclients', 'requests', 'clients'],
  baseline: () => ({ build: 'stock' }),

  async prepare(context, options) {
    const { builds, ioThreads, connections, long, maxclients, shape, requests, clients } = options
    if (!shape && (requests || clients)) {
      throw new Problem('--requests and --clients change what --shape runs: give that, too.')
    }
    const busy = shape
      ? Math.max(...shape.map((name) => shapeOf(name, options).clients))
      : connections + long
    const most = (await mostConnections()) - busy
    const numbers = options.idle.map((count) => (count === 'most' ? most : count))
    const idle = shape ? [0] : [...new Set(numbers)]
    const atOnce = Math.max(...idle) + busy
    await requireConnections(atOnce)
    if (maxclients !== undefined && maxclients <= atOnce) {
      throw new Problem(
        `--maxclients ${maxclients} is too low for ${atOnce} connections and one that reads the figures: make it ${atOnce + 1} or more, or --idle, --connections or --long lower.`,
      )
    }
    const benchmark = shape && (await requireRedisBenchmark(context.signal))
    const config = maxclients === undefined ? {} : { maxclients: String(maxclients) }
    const serverOf = await redisForEach(
      context,
      product({ threads: ioThreads, idle, build: builds }),
      ({ threads, idle, build }) =>
        startFilledRedis(context, {
          ...{ build, idle, busy },
          config: { ...config, 'io-threads': String(threads) },
        }),
    )
    return { serverOf, idle, benchmark }
  },

  cases({ idle }, { builds: build, ioThreads: threads, transports: transport, long, shape }) {
    if (shape) return product({ load: shape, tool: [BENCHMARK, 'our generator'], threads, build })
    const [first] = product({ transport, idle, threads })
    return [
      ...product({ load: [SHORT], transport, threads, idle, build }),
      ...(long > 0 ? product({ load: [LONG, BESIDE], build }) : []).map((one) => ({
        ...first,
        ...one,
      })),
    ]
  },

  async measure(one, { serverOf, idle, benchmark }, { options, context: { signal } }) {
    const { load, tool, transport } = one
    const server = serverOf({ idle: 0, ...one })
    const common = {
      target: transport === 'unix' ? { socket: server.socket } : { port: server.port },
      ...{ connections: options.connections, command: ['GET', '{key}'], signal },
      end: { seconds: options.duration },
    }
    if (isShape(load)) {
      const program = tool === BENCHMARK ? benchmark : undefined
      return await runShape(server, shapeOf(load, options), program, common)
    }
    const mode = load === SHORT ? 'short' : 'long'
    const connections = options[load === SHORT ? 'connections' : 'long']
    const [run] = await Promise.all([
      measureLoad(server, { ...common, mode, connections }),
      load === BESIDE ? generateLoad({ ...common, mode: 'short' }) : undefined,
    ])
    const traces = load === SHORT && one.idle === idle[0]
    const calls = traces ? await countSystemCallsOf(server, common) : null
    const { p50, p99, max } = run.latency
    return {
      values: {
        ...{ requestsPerSecond: run.perSecond, p50, p99, max },
        // Of two loads at the same time, neither's share is known.
        mainCpuMicros: load === BESIDE ? null : run.mainCpuMicros,
        cpuMicros: load === BESIDE ? null : run.cpuMicros,
        ...(calls && { systemCalls: sum(Object.values(calls)) }),
      },
      ...(calls && { details: { systemCalls: calls } }),
      ...{ errors: run.errors, doubts: run.doubts },
    }
  },

  sections: sectionsOf,
  claims: claimsOf,
  published: [
    { ...apsara, what: 'GET, O(N) search', value: 10_065, ...of('get-8000', 'baseline') },
    { ...apsara, what: 'GET, O(1), +37 %', value: 13_824, ...of('get-8000', 'stock') },
    { ...tencent, what: 'PING, -k 1 (long)', value: 93_580, ...of('ping-10000-kept', 'stock') },
    { ...tencent, what: 'PING, -k 0, O(N)', value: 16_472, ...of('ping-10000', 'baseline') },
    { ...tencent, what: 'PING, -k 0, O(1), +30 %', value: 21_455, ...of('ping-10000', 'stock') },
  ],
}

function idleNumbers(text: string): (number | 'most')[] {
  const list = text.split(',').map((part) => {
    const word = part.trim()
    if (word === 'most') return word
    if (/^\d{1,7}$/.test(word) && Number(word) <= MAX_IDLE) return Number(word)
    throw new InvalidArgumentError(`It must be whole numbers up to ${MAX_IDLE}, or "most".`)
  })
  if (new Set(list).size === list.length) return list
  throw new InvalidArgumentError('Each may stand in the list only once.')
}

/** System calls of the main thread per short connection, by name; null where they cannot be counted. */
async function countSystemCallsOf(
  { pid }: RedisServer,
  load: Omit<LoadOptions, 'mode'>,
): Promise<SystemCalls | null> {
  const { calls, result } = await countSystemCalls(
    pid,
    () => generateLoad({ ...load, mode: 'short', end: { seconds: 0.4 } }),
    load.signal,
  )
  if (!calls || result.completed === 0) return null
  const counts = Object.entries(calls)
  return Object.fromEntries(counts.map(([name, count]) => [name, count / result.completed]))
}
