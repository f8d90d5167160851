import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { Redis } from 'ioredis'
import { GENERATOR_LIMIT } from '../../drivers/generator-limit.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import { redisBenchmark, requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Case, Published } from '../../experiment/shape.ts'
import { lines } from '../../reporting/charts.ts'
import { documented, range, ratio, tableOf } from '../../reporting/columns.ts'
import { commands, isReading, keyspace, sentBy } from './commands.ts'

interface PipeliningOptions {
  pipelines: number[]
  keys: number[]
  clients: number
}

interface Bench {
  server: RedisServer
  monitor: RedisMonitor
  /** Path of redis-benchmark. */
  program: string
  /** Requests per second of each case in its warm-up, which tell how many fill a run. */
  rates: Map<Case, number>
}

/** Requests of the warm-up of a single command. */
const FIRST_REQUESTS = 20_000

const source = 'Redis pipeline以及批量优化: redis-benchmark -t get,set -n 100000'

/** What it is worth to send many commands at once, and to ask for many keys in one command. */
export const pipelining: Experiment<PipeliningOptions, Bench> = {
  name: 'pipelining',
  title: 'Redis: pipelines',
  summary: 'GET and SET in pipelines of 1 to 100, beside MGET and MSET',
  group: 'Redis',
  about: `
The documents ran redis-benchmark with and without -P 100. This runs the redis-benchmark of our build
against our build with one I/O thread, over TCP, with the documents' 50 clients. Rates are counted in
values: each command of a pipeline of GET or SET reads or writes one value, an MGET of 10 reads 10.

redis-benchmark has one thread and parses every reply. With short pipelines it is the limit, not Redis
(marked *). The CPU time that Redis spends on a value does not depend on that. Nor does the ceiling:
the rate at which Redis's main thread would be busy all the time. The latency is that of a whole
pipeline, from its write to the first byte of an answer.

Examples:
  npm run load -- pipelining --quick
  npm run load -- pipelining --pipelines 1,8,16,32 --keys 16`,
  rounds: 3,
  duration: 0.8,
  quick: { rounds: 1, duration: 0.3, pipelines: [1, 10, 100], keys: [10] },
  seconds: { quick: 10, usual: 60, full: 60 },
  configure(command) {
    const pipelines = { min: 1, max: 10_000, defaults: [1, 2, 5, 10, 20, 50, 100] }
    const keys = { min: 2, max: 1_000, defaults: [10, 100] }
    command
      .addOption(numbersOption('--pipelines <list>', 'GET or SET commands in one write', pipelines))
      .addOption(numbersOption('--keys <list>', 'keys in one MGET or MSET', keys))
      .option('--clients <n>', 'connections', wholeNumber(1, 1_000), 50)
  },

  factors: [
    { name: 'command', label: 'command' },
    { name: 'values', label: 'values per round trip' },
  ],
  subject: 'command',
  metrics: [
    {
      ...{ name: 'valuesPerSecond', label: 'values/s', unit: 'values/s' },
      ...{ kind: 'pace', better: 'higher', least: 0.1 },
    },
    { ...milliseconds('p50'), kind: 'pace', better: 'lower', least: 0.01 },
    { ...milliseconds('p99'), kind: 'pace', better: 'lower', least: 0.01 },
    {
      ...{ name: 'reads', label: 'socket reads /value', unit: 'reads/value' },
      ...{ kind: 'count', better: 'lower', least: 0.005 },
    },
    {
      ...{ name: 'mainCpuMicros', label: 'main thread CPU µs /value', unit: 'µs/value' },
      ...{ kind: 'cpu', better: 'lower', least: 0.1 },
    },
    { name: 'ceiling', label: 'ceiling values/s', unit: 'values/s' },
    { name: 'redisBusy', label: 'Redis busy', unit: 'share', format: 'percent' },
    { name: 'generatorBusy', label: 'generator busy', unit: 'share', format: 'percent' },
  ],
  progress: ['valuesPerSecond', 'mainCpuMicros'],
  doubts: {
    generator: {
      mark: '*',
      text: `redis-benchmark was busy ${GENERATOR_LIMIT * 100} % of the time or more and may have been the limit: trust the CPU time and the ceiling of this row, not its rate.`,
      keepsRatios: true,
    },
  },
  loadOptions: ['clients'],
  baseline: ({ command }) => ({ command: isReading(command) ? 'GET' : 'SET', values: 1 }),

  async prepare(context, { keys }) {
    const server = await context.startRedis({ build: 'patched' })
    const program = await requireRedisBenchmark(context.signal)
    await fill(server, keyspace(keys))
    const monitor = await RedisMonitor.connect(server.url)
    context.defer(() => monitor.close())
    return { server, monitor, program, rates: new Map() }
  },

  cases: (_, { pipelines, keys }) => commands(pipelines, keys),
  warmUp: (cases) => cases,

  async measure(one, { server, monitor, program, rates }, { round, options, context: { signal } }) {
    const { words, pipeline, keys } = sentBy(one)
    const first = (FIRST_REQUESTS * Math.min(pipeline, 10)) / Math.min(keys, 20)
    const wanted = round === 0 ? first : options.duration * (rates.get(one) ?? 0)
    const { clients } = options
    const requests = Math.max(clients * pipeline, Math.ceil(wanted))
    const args = ['-p', server.port, '-c', clients, '-n', requests, '-P', pipeline].map(String)
    const [cpuBefore, before] = [await server.cpu(), await monitor.read()]
    const run = await redisBenchmark({ program, args: [...args, ...words], signal })
    const [cpuAfter, after] = [await server.cpu(), await monitor.read()]
    if (round === 0) rates.set(one, run.perSecond)
    const cpu = cpuBetween(cpuBefore, cpuAfter)
    // redis-benchmark may send a few commands more than it was asked for, and CONFIG GET at first.
    const values = (after.commands - before.commands) * keys
    const mainCpuMicros = (cpu.mainCpuSeconds * 1e6) / values
    return {
      values: {
        valuesPerSecond: run.perSecond * keys,
        p50: run.p50,
        p99: run.p99,
        reads: (after.reads - before.reads) / values,
        mainCpuMicros,
        ceiling: 1e6 / mainCpuMicros,
        redisBusy: cpu.mainDemand,
        generatorBusy: run.demand,
      },
      doubts: (run.demand ?? 0) >= GENERATOR_LIMIT ? ['generator'] : [],
      details: { command: run.command },
    }
  },

  sections: (rows, { options }) => [
    {
      title: 'Many values in one round trip',
      paragraphs: [
        'GET and SET send their values in a pipeline of single commands, MGET and MSET in one command.',
      ],
      tables: [
        tableOf(rows, {
          caption: `redis-benchmark, ${options.clients} clients`,
          columns: [
            range('valuesPerSecond', rows),
            ratio('valuesPerSecond', '× one value'),
            documented('valuesPerSecond', 'documents values/s'),
            ...['p50', 'p99', 'reads', 'mainCpuMicros', 'ceiling', 'redisBusy', 'generatorBusy'],
          ],
        }),
      ],
      charts: [
        lines(rows, {
          metric: 'valuesPerSecond',
          over: 'values',
          title: 'Values per second, by values per round trip',
        }),
        lines(rows, {
          metric: 'mainCpuMicros',
          over: 'values',
          title: "CPU time of Redis's main thread per value, by values per round trip",
          logarithmic: true,
        }),
      ],
    },
  ],
  claims(rows) {
    const told = ['GET', 'SET'].flatMap((command) => worthOf(rows.where({ command })))
    return [...told.map(({ speed }) => speed), ...told.map(({ costs }) => costs)]
  },
  published: [...published('SET', 50_761, 483_092), ...published('GET', 70_671, 826_446)],
}

function milliseconds(name: string) {
  return { name, label: `${name} ms`, unit: 'ms' }
}

function published(command: string, single: number, pipelined: number): Published[] {
  const common = { metric: 'valuesPerSecond', unit: 'commands/s', source }
  return [
    { ...common, what: command, value: single, case: { command, values: 1 } },
    { ...common, what: `${command} -P 100`, value: pipelined, case: { command, values: 100 } },
  ]
}

async function fill({ socket }: RedisServer, values: Record<string, string>): Promise<void> {
  const redis = new Redis(socket)
  try {
    await redis.mset(values)
  } finally {
    redis.disconnect()
  }
}

/** What the longest pipeline of a command is worth, and why. */
function worthOf(rows: Rows): { speed: string; costs: string }[] {
  const [single, longest] = [rows.all[0], rows.all.at(-1)]
  if (!single || !longest) return []
  const { command, values = 1 } = longest.case
  const times = longest.ratio('valuesPerSecond', single)
  const [few, many] = [single, longest].map((row) => row.median('mainCpuMicros'))
  if (!times || !few || !many) return []
  // few = trip + each; many = trip / values + each
  const trip = (few - many) / (1 - 1 / Number(values))
  return [
    {
      speed: `${command}: pipelines of ${values} carry ${figure(times.median)} times as many values per second as one command at a time.`,
      costs: `${command}: a round trip costs Redis's main thread ${figure(trip)} µs, however many commands it carries, and each command in it ${figure(few - trip)} µs.`,
    },
  ]
}
