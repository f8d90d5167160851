import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import { redisBenchmark, requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { fillKeys, keyName } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { asCost, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import { fromArticles, range, ratio, sectionOf } from '../../reporting/columns.ts'

interface PipeliningOptions {
  pipelines: number[]
  keys: number[]
  clients: number
}

interface Bench {
  server: RedisServer
  /** Requests per second in the warm-up of each case, to compute the number of requests for the duration. */
  rates: Map<Case, number>
}

/** Requests in the warm-up of a single command. */
const FIRST_REQUESTS = 20_000

/** The value that redis-benchmark uses. */
const VALUE = 'xxx'

const isVariadic = (command: string) => command.startsWith('M')
const isReading = (command: string) => command.endsWith('GET')

const articles = {
  SET: { 1: 50_761, 100: 483_092 },
  GET: { 1: 70_671, 100: 826_446 },
}

/** Throughput and CPU time of pipelines, and of commands with many keys. */
export const pipelining: Experiment<PipeliningOptions, Bench> = {
  name: 'pipelining',
  title: 'Redis: pipelines',
  summary: 'GET and SET in pipelines of 1 to 100, and MGET and MSET',
  about: `
The source articles ran redis-benchmark with 50 clients, with and without -P 100. Rates count values: a GET or SET
reads or writes one value, an MGET of 10 keys reads 10. The latency is from the write of a pipeline to the first
byte of a reply.

With short pipelines, redis-benchmark limits the rate, because it has one thread (these rows are marked *). Use the
CPU time of Redis per value, and the ceiling: the rate at which Redis's main thread would be busy all the time.

Examples:
  npm run load -- pipelining --pipelines 1,8,16,32 --keys 16`,
  rounds: 3,
  duration: 0.8,
  quick: { rounds: 1, duration: 0.3, pipelines: [1, 10, 100], keys: [10] },
  configure(command) {
    const sizes = [1, 2, 5, 10, 20, 50, 100]
    command
      .addOption(numbersOption('--pipelines <list>', 'commands per pipeline', [1, 10_000], sizes))
      .addOption(numbersOption('--keys <list>', 'keys per MGET or MSET', [2, 1_000], [10, 100]))
      .option('--clients <n>', 'number of connections', wholeNumber(1, 1_000), 50)
  },

  factors: [{ name: 'command' }, { name: 'values', label: 'values per round trip' }],
  subject: 'command',
  metrics: [
    { name: 'valuesPerSecond', label: 'values/s', ...asRate },
    { name: 'p50', label: 'p50 ms', ...asLatency },
    { name: 'p99', label: 'p99 ms', ...asLatency },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /value', ...asCost },
    { name: 'ceiling', label: 'ceiling values/s' },
    { name: 'redisBusy', label: 'Redis busy', format: 'percent' },
    { name: 'generatorBusy', label: 'generator busy', format: 'percent' },
  ],
  progress: ['valuesPerSecond', 'mainCpuMicros'],
  doubts: {
    generator: {
      mark: '*',
      text: `redis-benchmark was busy ${GENERATOR_LIMIT * 100} % of the time or more and may have limited the rate. Use the CPU time and the ceiling of this row instead.`,
      keepsRatios: true,
    },
  },
  baseline: ({ command }) => ({ command: isReading(String(command)) ? 'GET' : 'SET', values: 1 }),

  async prepare(context, { keys }) {
    const server = await context.startRedis({ build: 'patched' })
    await requireRedisBenchmark(context.signal)
    await fillKeys(server.socket, Math.max(...keys), VALUE.length)
    return { server, rates: new Map() }
  },

  /** A single GET and a single SET are always included, because they are the baselines. */
  cases: (_, { pipelines, keys }) =>
    [
      ...product({ values: [...new Set([1, ...pipelines])], command: ['GET', 'SET'] }),
      ...product({ values: keys, command: ['MGET', 'MSET'] }),
    ].toSorted((a, b) => a.values - b.values),
  warmUp: (cases) => cases,

  async measure(one, { server, rates }, { round, options, context: { signal } }) {
    const [command, values] = [String(one.command), Number(one.values)]
    const keys = isVariadic(command) ? values : 1
    const pipeline = values / keys
    const first = (FIRST_REQUESTS * Math.min(pipeline, 10)) / Math.min(keys, 20)
    const wanted = round === 0 ? first : options.duration * (rates.get(one) ?? 0)
    const requests = Math.max(options.clients * pipeline, Math.ceil(wanted))
    const args = `-p ${server.port} -c ${options.clients} -n ${requests} -P ${pipeline} ${command}`
    const words = Array.from({ length: keys }, (_, index) =>
      isReading(command) ? [keyName(index)] : [keyName(index), VALUE],
    )
    const { result: run, cpu } = await cpuDuring(server, () =>
      redisBenchmark([...args.split(' '), ...words.flat()], signal),
    )
    if (round === 0) rates.set(one, run.perSecond)
    const { mainCpuMicros } = microsPer(cpu, requests * keys)
    return {
      values: {
        valuesPerSecond: run.perSecond * keys,
        p50: run.p50,
        p99: run.p99,
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
    sectionOf(rows, {
      title: 'Many values in one round trip',
      caption: `redis-benchmark, ${options.clients} clients`,
      columns: [
        range('valuesPerSecond', rows),
        ratio('valuesPerSecond', '× one value'),
        fromArticles('articles values/s', articles, 'command', 'values'),
        'p50',
        'p99',
        'mainCpuMicros',
        'ceiling',
        'redisBusy',
        'generatorBusy',
      ],
    }),
  ],
}
