import { type Command, InvalidArgumentError, Option } from 'commander'
import { listOf, wholeNumber } from '../../options.ts'
import { Problem } from '../../problem.ts'
import { type Transport, transports } from '../../stack/address.ts'
import { figure } from '../../table.ts'
import { shortConnectionFigures } from '../documents.ts'
import type { Context, Experiment, Findings, Server } from '../experiment.ts'
import { mostConnections, requireConnections } from '../limits.ts'
import {
  addBuilds,
  addRounds,
  type BuildsOptions,
  numbersOption,
  type RoundsOptions,
} from '../options.ts'
import { interleave, samplesOf } from '../rounds.ts'
import {
  longTable,
  shortConclusions,
  shortTable,
  summarizeShort,
} from './short-connections-report.ts'
import {
  type Case,
  countCalls,
  type LongRun,
  runLong,
  runShort,
  startCases,
  takingTurns,
  type Way,
} from './short-connections-runs.ts'
import { runShapes, type Shape, shapes } from './short-connections-shapes.ts'

interface ShortConnectionsOptions extends RoundsOptions, BuildsOptions {
  idle: (number | 'most')[]
  transports: Transport[]
  ioThreads: number[]
  connections: number
  long: number
  maxclients?: number
  shape?: Shape
  requests?: number
  clients?: number
}

const MOST_IDLE = 1_000_000

/** How long the system calls of one way are counted, in seconds. */
const COUNTING_SECONDS = 0.4

/** What opening and closing a connection for each command costs the server. */
export const shortConnections: Experiment<ShortConnectionsOptions> = {
  name: 'short-connections',
  summary: 'a new connection for each command, beside idle and long connections',
  about: `
Redis before version 5 searched the list of all its clients for each connection that it closed. The
documents made that a constant cost: +37 % with 8,000 short connections, +30 % with 10,000. baseline
has that search again, stock is upstream of today, patched goes on from there. What makes the search
dear is many clients that stay, hence the idle connections; redis-benchmark, which the documents used,
closes its oldest connection first, where the search ends at once.

Connections come from 200 loopback addresses, so that no port is needed twice within its minute of
TIME_WAIT, and from a network namespace of their own where the system allows one. The generator is one
thread: a rate that it limited is marked *, and then only CPU per connection tells the builds apart.

  --shape get-8000        as in the documents: redis-benchmark -k 0 -t get -n 100000 -c 8000
  --shape ping-10000      redis-benchmark -k 0 -t ping_mbulk -n 500000 -c 10000 (minutes)
  --shape ping-10000-kept the same with -k 1: long connections

Examples:
  npm run load -- redis short-connections --quick
  npm run load -- redis short-connections --idle 0,10000 --transports tcp --io-threads 1,2
  npm run load -- redis short-connections --idle most --builds stock,patched
  npm run load -- redis short-connections --idle 9950 --maxclients 10000 --connections 25 --long 0
  npm run load -- redis short-connections --shape get-8000 --rounds 3`,

  configure(command: Command) {
    addRounds(command, { rounds: 3, duration: 1 })
    addBuilds(command, ['baseline', 'stock', 'patched'])
    command
      .addOption(
        new Option('--idle <list>', 'connections that only stay; "most": as many as there can be')
          .argParser(idleNumbers)
          .default([0, 1_000, 10_000], '0,1000,10000'),
      )
      .addOption(
        new Option('--transports <list>', `out of ${transports.join(', ')}`)
          .argParser(listOf(transports))
          .default([...transports], transports.join(',')),
      )
      .addOption(
        numbersOption('--io-threads <list>', "Redis's threads, its main one included", {
          ...{ min: 1, max: 128, defaults: [1] },
        }),
      )
      .option('--connections <n>', 'short ones at the same time', wholeNumber(1, 100_000), 50)
      .option(
        '--long <n>',
        'long connections, alone and beside short ones',
        wholeNumber(0, 10_000),
        20,
      )
      .option(
        '--maxclients <n>',
        'of Redis (default: with room for all connections twice)',
        wholeNumber(1, MOST_IDLE),
      )
      .addOption(new Option('--shape <name>', "a run of the documents' instead").choices(shapes))
      .option('--requests <n>', 'with --shape: fewer than the documents', wholeNumber(1, 1e9))
      .option('--clients <n>', 'likewise', wholeNumber(1, 100_000))
  },
  quick: { rounds: 1, duration: 0.5, idle: [0, 10_000], transports: ['tcp'] },
  isolated: ({ builds, shape }) => (shape ? [...builds, 'tools'] : builds),

  async run(context, options) {
    const { shape, requests, clients } = options
    if (shape) return await runShapes(context, { ...options, shape })
    if (requests !== undefined || clients !== undefined) {
      throw new Problem('--requests and --clients change what --shape runs: give that, too.')
    }
    return await runChurn(context, options)
  },
}

function idleNumbers(text: string): (number | 'most')[] {
  const list = text.split(',').map((word) => {
    if (word.trim() === 'most') return 'most'
    if (/^\d{1,7}$/.test(word.trim()) && Number(word) <= MOST_IDLE) return Number(word)
    throw new InvalidArgumentError(`It must be whole numbers up to ${MOST_IDLE}, or "most".`)
  })
  if (new Set(list).size === list.length) return list
  throw new InvalidArgumentError('Each may stand in the list only once.')
}

async function runChurn(context: Context, options: ShortConnectionsOptions): Promise<Findings> {
  const { rounds, duration, builds, ioThreads, connections, long } = options
  const most = (await mostConnections()) - connections - long
  const idle = [...new Set(options.idle.map((count) => (count === 'most' ? most : count)))]
  const atOnce = Math.max(...idle) + connections + long
  await requireConnections(atOnce)
  if (options.maxclients !== undefined && options.maxclients <= atOnce) {
    throw new Problem(
      `--maxclients ${options.maxclients} is too low for ${atOnce} connections and one that reads the figures: make it ${atOnce + 1} or more, or --idle, --connections or --long lower.`,
    )
  }

  const cases: Case[] = ioThreads.flatMap((threads) =>
    idle.flatMap((count) => builds.map((build) => ({ build, ioThreads: threads, idle: count }))),
  )
  const servers = await startCases(context, cases, {
    connections: connections + long,
    maxclients: options.maxclients,
  })
  const serverOf = (one: Case): Server => {
    const server = servers.get(one)
    if (!server) throw new Error('every case has a server')
    return server
  }
  const turnOf = takingTurns(context, [...servers.values()])
  const pairs = options.transports.flatMap((transport) =>
    cases.map((one) => ({ one, way: { ...one, transport } satisfies Way })),
  )
  const taken = await interleave(context, {
    variants: pairs,
    rounds,
    label: ({ way }) => labelOf(way, ioThreads.length > 1),
    measure: ({ one, way: { transport } }) => {
      const server = serverOf(one)
      const run = { server, transport, connections, seconds: duration }
      return turnOf(server, () => runShort(context, run))
    },
    describe: (run) =>
      `${figure(run.connectionsPerSecond)} connections/s, ${figure(run.mainCpuMicros)} µs of the main thread`,
  })

  context.progress.begin('Counting system calls')
  const summaries = []
  for (const pair of pairs) {
    context.signal.throwIfAborted()
    const { one, way } = pair
    const run = { server: serverOf(one), transport: way.transport, connections }
    const count = () => countCalls(context, { ...run, seconds: COUNTING_SECONDS })
    const calls = way.idle === idle[0] ? await turnOf(run.server, count) : null
    const reference = pairs.find(
      ({ way: other }) =>
        other.build === 'stock' &&
        other.transport === way.transport &&
        other.ioThreads === way.ioThreads &&
        other.idle === way.idle,
    )
    summaries.push(
      summarizeShort({
        way,
        label: labelOf(way, ioThreads.length > 1),
        runs: samplesOf(taken, pair),
        base: reference && reference !== pair ? samplesOf(taken, reference) : null,
        calls,
      }),
    )
  }
  context.progress.end('done')

  const longRuns =
    long > 0 ? await runLongConnections(context, options, cases, serverOf, turnOf) : []
  return {
    tables: [
      shortTable(summaries, connections),
      ...(long > 0 ? [longTable(longRuns, builds, { long, short: connections })] : []),
    ],
    conclusions: shortConclusions(summaries),
    documents: shortConnectionFigures,
    data: {
      summaries,
      samples: taken.map(({ variant, round, sample }) => ({ ...variant.way, round, ...sample })),
      long: longRuns,
    },
  }
}

function labelOf({ transport, idle, ioThreads, build }: Way, withThreads: boolean): string {
  const threads = withThreads ? `, ${ioThreads} thread${ioThreads === 1 ? '' : 's'}` : ''
  const way = transport === 'tcp' ? 'TCP ' : 'Unix'
  return `${way}  ${idle.toLocaleString('en-US').padStart(6)} idle${threads}  ${build}`
}

/** Long connections, which are not to suffer: on the first case of each build. */
async function runLongConnections(
  context: Context,
  {
    builds,
    rounds,
    duration,
    long,
    connections,
    transports: [transport = 'tcp'],
  }: ShortConnectionsOptions,
  cases: readonly Case[],
  serverOf: (one: Case) => Server,
  turnOf: ReturnType<typeof takingTurns>,
): Promise<({ build: string; beside: boolean; round: number } & LongRun)[]> {
  const variants = builds.flatMap((build) => {
    const one = cases.find((other) => other.build === build)
    return one ? [false, true].map((beside) => ({ build, beside, one })) : []
  })
  const taken = await interleave(context, {
    variants,
    rounds,
    label: ({ build, beside }) => `long${beside ? ' beside short' : ''}  ${build}`,
    measure: ({ one, beside }) => {
      const server = serverOf(one)
      const short = beside ? connections : 0
      const run = { server, transport, connections: long, seconds: duration, short }
      return turnOf(server, () => runLong(context, run))
    },
    describe: ({ commandsPerSecond, latency }) =>
      `${figure(commandsPerSecond)} commands/s, p99 ${figure(latency.p99)} ms`,
  })
  return taken.map(({ variant: { build, beside }, round, sample }) => ({
    build,
    beside,
    round,
    ...sample,
  }))
}
