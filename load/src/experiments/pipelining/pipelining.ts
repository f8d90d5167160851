import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { GENERATOR_LIMIT } from '../../drivers/generator-limit.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { fillKeys, keyName } from '../../drivers/redis/keys.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import { redisBenchmark, requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import { asCount, asCpu, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import { lines } from '../../reporting/charts.ts'
import { documented, range, ratio, tableOf } from '../../reporting/columns.ts'

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
  /** Requests per second of each case in its warm-up: a run has as many as fill its duration. */
  rates: Map<Case, number>
}

/** Requests of the warm-up of a single command. */
const FIRST_REQUESTS = 20_000

/** As redis-benchmark's own. */
const VALUE = 'xxx'

const documents = {
  ...{ metric: 'valuesPerSecond', unit: 'commands/s' },
  source: 'Redis pipeline以及批量优化: redis-benchmark -t get,set -n 100000',
}
const [single, pipelined] = [{ values: 1 }, { values: 100 }]

const isVariadic = (command: Case[string] = '') => String(command).startsWith('M')
const isReading = (command: Case[string] = '') => String(command).endsWith('GET')

/** What it is worth to send many commands at once, and to ask for many keys in one command. */
export const pipelining: Experiment<PipeliningOptions, Bench> = {
  name: 'pipelining',
  title: 'Redis: pipelines',
  summary: 'GET and SET in pipelines of 1 to 100, beside MGET and MSET',
  group: 'Redis',
  about: `
The documents ran redis-benchmark with and without -P 100. This runs the redis-benchmark of our build
against our build over TCP, with the documents' 50 clients. Rates are counted in values: each GET or SET
of a pipeline reads or writes one value, an MGET of 10 reads 10.

redis-benchmark has one thread and parses every reply. With short pipelines it is the limit, not Redis
(marked *); the CPU time that Redis spends on a value does not depend on that, nor does the ceiling: the
rate at which Redis's main thread would be busy all the time. The latency is that of a whole pipeline,
from its write to the first byte of an answer.

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
    { name: 'valuesPerSecond', label: 'values/s', ...asRate },
    { name: 'p50', label: 'p50 ms', ...asLatency },
    { name: 'p99', label: 'p99 ms', ...asLatency },
    { name: 'reads', label: 'socket reads /value', ...asCount, least: 0.005 },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /value', ...asCpu, least: 0.1 },
    { name: 'ceiling', label: 'ceiling values/s' },
    { name: 'redisBusy', label: 'Redis busy', format: 'percent' },
    { name: 'generatorBusy', label: 'generator busy', format: 'percent' },
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
  baseline: ({ command }) => ({ command: isReading(command) ? 'GET' : 'SET', ...single }),

  async prepare(context, { keys }) {
    const server = await context.startRedis({ build: 'patched' })
    const program = await requireRedisBenchmark(context.signal)
    await fillKeys(server.socket, Math.max(...keys), VALUE.length)
    const monitor = await RedisMonitor.connect(server.url)
    context.defer(() => monitor.close())
    return { server, monitor, program, rates: new Map() }
  },

  /** A single GET and a single SET are always among them: the others are compared with these. */
  cases: (_, { pipelines, keys }) =>
    [
      ...product({ values: [...new Set([1, ...pipelines])], command: ['GET', 'SET'] }),
      ...product({ values: keys, command: ['MGET', 'MSET'] }),
    ].toSorted((a, b) => a.values - b.values),
  warmUp: (cases) => cases,

  async measure(one, { server, monitor, program, rates }, { round, options, context: { signal } }) {
    const [command, values] = [String(one.command), Number(one.values)]
    const keys = isVariadic(command) ? values : 1
    const pipeline = values / keys
    const first = (FIRST_REQUESTS * Math.min(pipeline, 10)) / Math.min(keys, 20)
    const wanted = round === 0 ? first : options.duration * (rates.get(one) ?? 0)
    const { clients } = options
    const requests = Math.max(clients * pipeline, Math.ceil(wanted))
    const args = ['-p', server.port, '-c', clients, '-n', requests, '-P', pipeline, command]
    for (let index = 0; index < keys; index++) {
      args.push(keyName(index), ...(isReading(command) ? [] : [VALUE]))
    }
    const before = await monitor.read()
    const { result: run, cpu } = await cpuDuring(server, () =>
      redisBenchmark(program, args.map(String), signal),
    )
    const after = await monitor.read()
    if (round === 0) rates.set(one, run.perSecond)
    // redis-benchmark may send a few commands more than it was asked for, and CONFIG GET at first.
    const sent = (after.commands - before.commands) * keys
    const { mainCpuMicros } = microsPer(cpu, sent)
    return {
      values: {
        valuesPerSecond: run.perSecond * keys,
        p50: run.p50,
        p99: run.p99,
        reads: (after.reads - before.reads) / sent,
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
          ...{ metric: 'valuesPerSecond', over: 'values' },
          title: 'Values per second, by values per round trip',
        }),
        lines(rows, {
          ...{ metric: 'mainCpuMicros', over: 'values', logarithmic: true },
          title: "CPU time of Redis's main thread per value, by values per round trip",
        }),
      ],
    },
  ],
  claims: (rows) => ['GET', 'SET'].flatMap((command) => claimsOf(command, rows.where({ command }))),
  published: [
    { ...documents, what: 'SET', value: 50_761, case: { command: 'SET', ...single } },
    { ...documents, what: 'SET -P 100', value: 483_092, case: { command: 'SET', ...pipelined } },
    { ...documents, what: 'GET', value: 70_671, case: { command: 'GET', ...single } },
    { ...documents, what: 'GET -P 100', value: 826_446, case: { command: 'GET', ...pipelined } },
  ],
}

/** What the longest pipeline of a command is worth, and why. */
function claimsOf(command: string, { all }: Rows): string[] {
  const [first, last] = [all[0], all.at(-1)]
  const times = first && last?.ratio('valuesPerSecond', first)
  if (!times) return []
  const values = Number(last?.case.values)
  const [one = 0, many = 0] = [first, last].map((row) => row?.median('mainCpuMicros') ?? 0)
  // one = trip + each; many = trip / values + each
  const trip = (one - many) / (1 - 1 / values)
  return [
    `${command}: pipelines of ${values} carry ${figure(times.median)} times as many values per second as one command at a time.`,
    `${command}: a round trip costs Redis's main thread ${figure(trip)} µs, however many commands it carries, and each command in it ${figure(one - trip)} µs.`,
  ]
}
