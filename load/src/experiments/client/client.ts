import { ownHostOption, redisAddress } from '@onetrip/stack/address.ts'
import { seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { Option } from 'commander'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { redisBenchmark, requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { percent } from '../../experiment/figures.ts'
import type { Row } from '../../experiment/rows.ts'
import { asCount, asCpu, asRate, type Measured } from '../../experiment/shape.ts'
import { chartsOf } from '../../reporting/charts.ts'
import { type Column, documented, errors, range, tableOf } from '../../reporting/columns.ts'
import { type CallerName, callers, type LoopOptions, loop, missingKey } from './callers.ts'
import {
  describeOthers,
  describeOwn,
  isOutOfPorts,
  readingTable,
  yardstickOf,
} from './diagnosis.ts'
import { Address, findTarget, type Target, watchOthers } from './target.ts'

interface ClientOptions {
  url?: Address
  iOwnThisHost?: boolean
  /** Commands per second of the user's own client. */
  mine?: number
  /** Seconds. */
  watch: number
}

interface Bench {
  target: Target
  hasBenchmark: boolean
  /** What clients have reached so far, which tells how many commands fill a run of redis-benchmark. */
  rates: Map<string, number>
}

/** How a client is run: by redis-benchmark, or by calls of this process. */
interface Client {
  readonly label: string
  readonly caller: CallerName | 'redis-benchmark'
  /** Calls in flight. Default 1. */
  readonly width?: number
  readonly reconnects?: boolean
}

const clients: Readonly<Record<string, Client>> = {
  benchmark: { label: 'redis-benchmark -c 1', caller: 'redis-benchmark' },
  raw: { label: 'a plain socket', caller: 'raw' },
  ioredis: { label: 'ioredis', caller: 'ioredis' },
  store: { label: 'our store', caller: 'store' },
  'store-32': { label: 'our store, 32 calls at a time', caller: 'store', width: 32 },
  'benchmark-reconnect': {
    label: 'redis-benchmark -c 1 -k 0',
    caller: 'redis-benchmark',
    reconnects: true,
  },
  reconnect: {
    label: 'a plain socket per command',
    caller: 'reconnect',
    reconnects: true,
  },
  'reconnect-ioredis': {
    label: 'an ioredis client per command',
    caller: 'reconnect-ioredis',
    reconnects: true,
  },
}

const labelOf = (name: string | number) => clients[name]?.label ?? String(name)

const FIRST_CALLS = 200

/** The fact under which a result keeps what other clients of the server did. */
const OTHERS = 'Other clients'

/** The documents' table: what the rate of a single client says about how it uses its connection. */
export const client: Experiment<ClientOptions, Bench> = {
  name: 'client',
  title: 'Redis: a single client',
  summary: 'one client beside redis-benchmark -c 1: does it keep its connection?',
  group: 'Redis',
  about: `
Each client reads a key that does not exist (GET ${missingKey}; the store sends one ZRANGE), one command at a
time unless its row says otherwise. Without --url it measures a Redis of its own, and also connections per
command and the CPU time of Redis's main thread.

With --url, or REDIS_URL in the environment, it diagnoses a server of yours with at most 1,000 commands and
200 connections in a run, and writes nothing. First it watches for a few seconds what the server's other
clients do. Give --mine the rate that your own client reaches with one connection, and it says what that
rate means. A password is only taken from REDIS_URL. It is never given to redis-benchmark, where everybody
could see it: then, as with TLS, a plain socket is the reference.

Examples:
  npm run load -- client
  npm run load -- client --url redis://127.0.0.1:6379 --mine 9000
  REDIS_URL=rediss://me:secret@cache.example:6380 npm run load -- client ${ownHostOption}`,
  rounds: 25,
  duration: 0.12,
  quick: { rounds: 5, duration: 0.1, watch: 1 },
  seconds: { quick: null, usual: 40, full: 40 },
  configure(command) {
    command
      .addOption(
        new Option('--url <url>', 'a server of yours, instead of one of its own')
          .env('REDIS_URL')
          .argParser((url) => (url === '' ? undefined : new Address(url))),
      )
      .option(ownHostOption, 'the server of --url is another machine, and mine to put load on')
      .option('--mine <n>', 'commands per second of your own client', wholeNumber(1, 100_000_000))
      .option('--watch <seconds>', "how long to watch --url's other clients", seconds(0, 60), 3)
  },

  factors: [{ name: 'client', text: labelOf }],
  subject: 'client',
  metrics: [
    { name: 'perSecond', label: 'commands/s', ...asRate },
    { name: 'p50', label: 'p50 µs', kind: 'pace', better: 'lower', least: 10 },
    { name: 'p99', label: 'p99 µs', kind: 'pace', better: 'lower', least: 10 },
    { name: 'connections', label: 'connections /command', format: 'fixed', ...asCount },
    { name: 'mainCpuMicros', label: 'Redis main thread CPU µs /command', ...asCpu },
    { name: 'calls', label: 'commands', format: 'whole' },
  ],
  progress: ['perSecond'],
  loadOptions: [],
  baseline: (_, cases) => ({
    client: cases.some(({ client }) => client === 'benchmark') ? 'benchmark' : 'raw',
  }),

  async prepare(context, { url, iOwnThisHost = false, watch }) {
    const target = await findTarget(context, url, iOwnThisHost)
    context.describe('load', { Server: target.name })
    const hasBenchmark = await canBenchmark(target, context.signal)
    if (url && watch > 0) {
      const others = await context.step(`Watching the other clients for ${watch} s`, () =>
        watchOthers(url.url, watch, context.signal),
      )
      context.describe('software', { [OTHERS]: describeOthers(others) })
    }
    return { target, hasBenchmark, rates: new Map() }
  },

  cases: ({ hasBenchmark }) =>
    Object.entries(clients)
      .filter(([, { caller }]) => hasBenchmark || caller !== 'redis-benchmark')
      .map(([name]) => ({ client: name })),
  warmUp: (cases) => cases,

  async measure({ client: name = '' }, bench, { round, options, context: { signal } }) {
    const one = clients[name] as Client
    const { target, rates } = bench
    const seconds = round === 0 ? options.duration / 2 : options.duration
    const most = one.reconnects ? target.maxConnections : target.maxCalls
    try {
      const measured = await counted(target, async () =>
        one.caller === 'redis-benchmark'
          ? await runBenchmark(bench, one, (rates.get(one.label) ?? 0) * seconds, most, signal)
          : await runCalls(one.caller, target.url, {
              ...{ width: one.width ?? 1, seconds, maxCalls: most, signal },
            }),
      )
      rates.set(one.label, measured.values.perSecond ?? 0)
      return measured
    } catch (error) {
      if (!isOutOfPorts(error)) throw unreachable(error, target)
      return { values: { calls: 0 }, errors: { [(error as Error).message]: 1 } }
    }
  },

  sections(rows) {
    const yardstick = yardstickOf(rows)
    return [
      {
        title: 'What one client reaches',
        tables: [
          tableOf(rows, {
            caption: 'One client, one command at a time unless the row says otherwise',
            columns: [
              range('perSecond', rows),
              share,
              documented('documents', documents, 'client'),
              ...['p50', 'p99', 'connections', 'mainCpuMicros'],
              errors,
            ],
          }),
          ...(yardstick ? [readingTable(yardstick)] : []),
        ],
        charts: chartsOf(
          rows.filter(({ case: { client } }) => !clients[String(client)]?.width),
          'perSecond',
        ),
      },
    ]
  },

  claims(rows, { options: { mine }, software }) {
    const yardstick = yardstickOf(rows)
    const others = software[OTHERS]
    return [
      yardstick &&
        `Beside ioredis on one connection, a client that opens one for each command does ${percent(yardstick.reconnects / yardstick.keeps)} of the commands, and ${percent(yardstick.reconnectsWithGreeting / yardstick.keeps)} with what ioredis says on each new connection (HELLO, CLIENT SETINFO twice, INFO).`,
      yardstick && typeof mine === 'number' && describeOwn(mine, yardstick),
      others && `${OTHERS}: ${others}`,
      ...rows.all.flatMap((row) =>
        Object.keys(row.errors).map((message) => `${row.subject} ended early: ${message}`),
      ),
      rows.all.some(hasNoPorts) &&
        'There was no port left for another connection, since each keeps its port for a minute after it was closed. This is what "Cannot assign requested address" means: keep connections. Wait a minute before you repeat this.',
      !rows.find({ client: 'benchmark' }) &&
        `The reference is ${labelOf('raw')}, because redis-benchmark cannot be used.`,
    ]
  },
}

const share: Column = {
  head: '% of the reference',
  cell(row, rows) {
    const base = row.baseline(rows)
    if (row === base) return '100 %'
    const ratio = row.ratio('perSecond', base)
    return ratio ? percent(ratio.median) : '-'
  },
}

/** What the documents say that a client reaches, of redis-benchmark -c 1. */
const documents = { benchmark: '100 %', ioredis: '50-60 %', reconnect: '25-30 %' }

const hasNoPorts = ({ errors }: Row) => Object.keys(errors).some(isOutOfPorts)

/** redis-benchmark takes a password as an argument only, and ours is built without TLS. */
async function canBenchmark(target: Target, signal: AbortSignal): Promise<boolean> {
  const { password, tls } = redisAddress(target.url).options
  if (password || tls) return false
  try {
    await requireRedisBenchmark(signal)
    return true
  } catch (error) {
    if (error instanceof Problem) return false
    throw error
  }
}

async function runBenchmark(
  { target }: Bench,
  { reconnects }: Client,
  wanted: number,
  most: number,
  signal: AbortSignal,
): Promise<Called> {
  const { host = '127.0.0.1', port = 6379, path, db = 0 } = redisAddress(target.url).options
  const calls = Math.min(most, Math.max(FIRST_CALLS, Math.ceil(wanted)))
  const args = [
    ...(path ? ['-s', path] : ['-h', host, '-p', String(port)]),
    ...['--dbnum', String(db), '-c', '1', '-n', String(calls), '-k', reconnects ? '0' : '1'],
    ...['GET', missingKey],
  ]
  const { perSecond, p50, p99 } = await redisBenchmark(args, signal)
  return { values: { calls, perSecond, p50: p50 * 1_000, p99: p99 * 1_000 } }
}

async function runCalls(name: CallerName, url: string, options: LoopOptions): Promise<Called> {
  const caller = await callers[name](url)
  try {
    const { error, ...values } = await loop(caller, options)
    return { values, ...(error && { errors: { [error.message]: 1 } }) }
  } finally {
    await caller.close?.()
  }
}

/** What a run gave: `calls` is how many commands were answered. */
type Called = Measured & { values: { calls: number; perSecond?: number } }

/** Adds what a run cost the server, where that can be told from what others do. */
async function counted({ server }: Target, work: () => Promise<Called>): Promise<Called> {
  if (!server) return await work()
  const monitor = await RedisMonitor.connect(server.url)
  try {
    const before = await monitor.read()
    const { result: run, cpu } = await cpuDuring(server, work)
    const after = await monitor.read()
    const { calls } = run.values
    if (calls === 0) return run
    const connections = (after.connections - before.connections) / calls
    return { ...run, values: { ...run.values, connections, ...microsPer(cpu, calls) } }
  } finally {
    monitor.close()
  }
}

/** An error of the system, not of ours, is about the server: it has gone away meanwhile. */
function unreachable(cause: unknown, { name }: Target): unknown {
  const { code, message } = cause as NodeJS.ErrnoException
  if (cause instanceof Problem || code === undefined) return cause
  return new Problem(`The Redis at ${name} cannot be used any more: ${message}`, { cause })
}
