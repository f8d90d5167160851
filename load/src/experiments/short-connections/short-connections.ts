import { transports } from '@onetrip/stack/address.ts'
import { list, listOf, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Option } from 'commander'
import { limitedByGenerator, measureLoad } from '../../drivers/redis/cost.ts'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { type PeerNetwork, startPeerNetwork } from '../../drivers/redis/generator/peer-network.ts'
import {
  maxConnections,
  removeNetworkLimits,
  requireConnections,
} from '../../drivers/redis/limits.ts'
import {
  addBuilds,
  type BuildsOptions,
  namesOption,
  numbersOption,
} from '../../drivers/redis/options.ts'
import { requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted } from '../../experiment/figures.ts'
import { asCost, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import { countInstructionsOf, countSystemCallsOf, profileOf } from './counts.ts'
import {
  isLight,
  LIGHT_CLIENTS,
  LIGHT_CONFIG,
  type LightLoad,
  lightCases,
  lightLoadNames,
  runLight,
} from './light.ts'
import { BESIDE, LONG, SHORT, sectionsOf } from './report.ts'
import { isShape, runShape, type Shape, shapeNames, shapeOf } from './shapes.ts'

const ways = {
  tcp: 'TCP',
  unix: 'Unix socket',
  veth: 'TCP between two namespaces',
}
type Way = keyof typeof ways

interface ShortConnectionsOptions extends BuildsOptions {
  idle: (number | 'most')[]
  transports: Way[]
  ioThreads: number[]
  connections: number
  long: number
  maxclients?: number
  shape?: (Shape | LightLoad)[]
  requests?: number
}

interface Bench {
  serverOf: (one: Case) => RedisServer
  idle: number[]
  peer: PeerNetwork | undefined
}

/** The loads of --shape that are those of the source articles. */
const shapesIn = ({ shape = [] }: ShortConnectionsOptions) => shape.filter(isShape)

const tools = ['redis-benchmark', 'our generator'] as const
type Tool = (typeof tools)[number]
const MAX_IDLE = 1_000_000
const GET = ['GET', '{key}']

/** The cost of a new connection for each command, by build of Redis. */
export const shortConnections: Experiment<ShortConnectionsOptions, Bench> = {
  name: 'short-connections',
  title: 'Redis: short connections',
  summary: 'CPU time of short connections, with idle and long connections',
  about: `
Until 4.0.11, Redis searched the list of all clients whenever it closed a connection. The source articles removed
this search, which gave +37 % requests/s with 8,000 short connections, and +30 % PING_BULK with 10,000. The build
"baseline" has the search again, "stock" is Redis 8, "patched" has our patches. The search is expensive if many
clients stay connected, hence the idle connections.

Clients connect from 200 addresses, because a closed connection holds its port for a minute. Redis and the clients
run in their own network namespace, if the system allows it. With --transports veth, the clients run in a second
namespace, and a pair of virtual network devices connects the two. Separate runs count system calls (strace, with
the first number of idle connections) and instructions (perf). perf also samples the main thread, with the largest
number of idle connections.

--shape runs other loads instead: redis-benchmark like the source articles, and our generator with the same load.
redis-benchmark closes its oldest connection first, which the search finds at once. In the network namespace,
closed connections free their ports at once, and the backlog has room for all clients. The last three shapes leave
Redis idle most of the time.
  get-8000         redis-benchmark -k 0 -t get -n 100000 -c 8000
  ping-10000       redis-benchmark -k 0 -t ping_mbulk -n 500000 -c 10000 (takes minutes)
  ping-10000-kept  the same with -k 1 (long connections)
  rates            50 to 5,000 connections per second, of 1 client, or of 10 or 50 that connect at the same moment
  burst            10 clients connect at the same moment, while another one runs commands of 10 ms
  half-close       a client shuts down its sending side; time until it sees the end of the connection

Examples:
  npm run load -- short-connections --idle most --transports tcp --io-threads 1,2
  npm run load -- short-connections --idle 9950 --maxclients 10000 --connections 25 --long 0
  npm run load -- short-connections --shape get-8000
  npm run load -- short-connections --shape rates,burst,half-close --builds stock,patched --duration 2`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.5, idle: [0, 10_000], transports: ['tcp'] },
  configure(command) {
    addBuilds(command, ['baseline', 'stock', 'patched'])
    const idle = (text: string) => (text === 'most' ? text : wholeNumber(0, MAX_IDLE)(text))
    const threads = "Redis's threads, including the main thread"
    const clients = "Redis's maxclients (default: enough for all connections)"
    const shapes = [...shapeNames, ...lightLoadNames]
    const shapesHelp = `run other loads instead, any of ${shapes.join(', ')}`
    command
      .addOption(
        new Option('--idle <list>', 'idle connections; "most": the largest possible number')
          .argParser(list<number | 'most'>(idle))
          .default([0, 1_000, 10_000], '0,1000,10000'),
      )
      .addOption(namesOption('--transports <list>', Object.keys(ways) as Way[], [...transports]))
      .addOption(numbersOption('--io-threads <list>', threads, [1, 128], [1]))
      .option('--connections <n>', 'concurrent short connections', wholeNumber(1, 100_000), 50)
      .option('--long <n>', 'concurrent long connections', wholeNumber(0, 10_000), 20)
      .option('--maxclients <n>', clients, wholeNumber(1, MAX_IDLE))
      .addOption(new Option('--shape <list>', shapesHelp).argParser(listOf(shapes)))
      .option(
        '--requests <n>',
        'with --shape: requests per run (default: as in the source articles)',
        wholeNumber(1, 1e9),
      )
  },
  isolated: (options) =>
    shapesIn(options).length > 0 ? [...options.builds, 'tools'] : options.builds,

  factors: [
    { name: 'load', text: (load) => (load === BESIDE ? 'long with short' : String(load)) },
    { name: 'tool' },
    { name: 'transport', label: 'over', text: (by) => ways[by as Way] },
    { name: 'idle', label: 'idle connections' },
    { name: 'clients' },
    { name: 'rate', label: 'connections/s' },
    { name: 'threads', label: 'I/O threads', text: (value) => counted(Number(value), 'thread') },
    { name: 'build' },
  ],
  subject: 'build',
  metrics: [
    { name: 'perSecond', label: 'requests/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /request', ...asCost },
    { name: 'cpuMicros', label: 'all threads CPU µs /request', ...asCost },
    { name: 'systemCalls', label: 'system calls /connection', ...asCost },
    { name: 'instructions', label: 'instructions', ...asCost },
    { name: 'p50', label: 'p50 ms' },
    { name: 'p99', label: 'p99 ms', ...asLatency },
    { name: 'max', label: 'longest ms' },
  ],
  progress: ['perSecond', 'mainCpuMicros'],
  doubts: {
    generator: limitedByGenerator,
    rested: {
      mark: '‡',
      text: "Redis's main thread was idle most of the time. The rate is limited by the tool, by its search for a free port, or by repeated SYNs because Redis's backlog was full. Compare CPU times.",
    },
  },
  baseline: () => ({ build: 'stock' }),

  async prepare(context, options) {
    const { builds, ioThreads, connections, long, maxclients, shape, requests } = options
    const articles = shapesIn(options)
    if (requests && articles.length === 0) {
      throw new Problem('--requests has no effect without --shape get-8000 or ping-10000.')
    }
    if (shape && options.transports.includes('veth')) {
      throw new Problem('--transports veth has no effect with --shape.')
    }
    const busy = shape
      ? Math.max(LIGHT_CLIENTS, ...articles.map((name) => shapeOf(name).clients))
      : connections + long
    const most = (await maxConnections()) - busy
    const wanted = options.idle.map((count) => (count === 'most' ? most : count))
    const idle = shape ? [0] : [...new Set(wanted)]
    await requireConnections(Math.max(...idle) + busy)
    if (articles.length > 0) {
      await requireRedisBenchmark(context.signal)
      const limits = (await removeNetworkLimits(busy)) ? 'none' : 'as usual'
      context.describe('load', { 'TIME_WAIT and backlog': limits })
    }
    const peer = options.transports.includes('veth')
      ? await startPeerNetwork(context.signal)
      : undefined
    if (peer) context.defer(() => peer.stop())
    const cases = product({ threads: ioThreads, idle, build: builds })
    const serverOf = await redisForEach(context, cases, ({ threads, ...one }) => {
      const room = maxclients === undefined ? {} : { maxclients: String(maxclients) }
      const backlog = shape ? { 'tcp-backlog': String(busy), ...LIGHT_CONFIG } : {}
      const reachable = peer ? { bind: '*', 'protected-mode': 'no' } : {}
      const config = { ...room, ...backlog, ...reachable, 'io-threads': String(threads) }
      return startFilledRedis(context, { ...one, busy, config })
    })
    return { serverOf, idle, peer }
  },

  cases({ idle }, { builds: build, ioThreads: threads, transports: transport, long, shape }) {
    if (shape) {
      return shape.flatMap((load) =>
        isLight(load)
          ? lightCases(load, { threads, build })
          : product({ load: [load], tool: tools, threads, build }),
      )
    }
    const [first] = product({ transport, idle, threads })
    return [
      ...product({ load: [SHORT], transport, threads, idle, build }),
      ...product({ load: long > 0 ? [LONG, BESIDE] : [], build }).map((one) => ({
        ...first,
        ...one,
      })),
    ]
  },

  async measure(one, { serverOf, idle, peer }, { options, context: { signal } }) {
    const { load, tool, transport } = one
    const server = serverOf({ idle: 0, ...one })
    const end = { seconds: options.duration }
    const from = transport === 'veth' && peer ? { from: peer } : {}
    const target = transport === 'unix' ? { socket: server.socket } : { port: server.port, ...from }
    const { connections } = options
    const short = { target, mode: 'short', connections, command: GET, end, signal } as const
    if (isShape(load)) {
      const shape = shapeOf(load, options.requests)
      return await runShape(server, shape, tool as Tool, { target, signal })
    }
    if (isLight(load)) {
      return await runLight(server, one, { ...short, target: { port: server.port } })
    }
    if (load === SHORT) {
      const run = await measureLoad(server, short)
      const instructions = await countInstructionsOf(server, short)
      const counts = one.idle === idle[0] ? await countSystemCallsOf(server, short) : null
      const profile = one.idle === Math.max(...idle) ? await profileOf(server, short) : null
      return {
        ...run,
        values: { ...run.values, ...counts?.values, instructions },
        ...((counts || profile) && {
          details: { ...counts?.details, ...(profile && { profile }) },
        }),
      }
    }
    const long = { ...short, mode: 'long', connections: options.long } as const
    if (load === LONG) {
      const run = await measureLoad(server, long)
      return {
        ...run,
        values: { ...run.values, instructions: await countInstructionsOf(server, long) },
      }
    }
    const [run] = await Promise.all([measureLoad(server, long), generateLoad(short)])
    // The CPU time of two concurrent loads cannot be separated.
    return { ...run, values: { ...run.values, mainCpuMicros: null, cpuMicros: null } }
  },

  sections: sectionsOf,
}
