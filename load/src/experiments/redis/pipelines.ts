import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { redisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import { fillKeys, keyName } from '../../drivers/redis/servers.ts'
import { fromArticles, range, ratio } from '../../reporting/columns.ts'
import { type Case, product } from '../../rounds/shape.ts'
import type { Preset } from './redis.ts'

/** Requests in the warm-up of a single command. */
const FIRST_REQUESTS = 20_000

/** Requests per second in the warm-up of each case, to compute the number of requests for the duration. */
const rates = new WeakMap<Case, number>()

/** The value that redis-benchmark uses. */
const VALUE = 'xxx'

const isVariadic = (command: string) => command.startsWith('M')
const isReading = (command: string) => command.endsWith('GET')

const articles = {
  SET: { 1: 50_761, 100: 483_092 },
  GET: { 1: 70_671, 100: 826_446 },
}

/** Throughput and CPU time of pipelines, and of commands with many keys. */
export const pipelines: Preset = {
  name: 'redis pipelines',
  title: 'Redis: pipelines',
  summary: 'GET and SET in pipelines of 1 to 100, and MGET and MSET',
  about: `
The articles ran redis-benchmark with 50 clients, with and without -P 100. Rates count values: a GET or SET
reads or writes one value, an MGET of 10 keys reads 10. The latency is from the write of a pipeline to the first
byte of a reply.

With short pipelines, redis-benchmark limits the rate, because it has one thread (these rows are marked *). Use the
CPU time of Redis per value, and the ceiling: the rate at which Redis's main thread would be busy all the time.

Examples:
  npm run load -- redis pipelines --pipeline 1,8,16,32 --values 16`,
  duration: 0.8,
  quick: { rounds: 1, duration: 0.3, pipeline: [1, 10, 100], values: [10] },
  settings: {
    builds: ['patched'],
    threads: [1],
    pipeline: [1, 2, 5, 10, 20, 50, 100],
    values: [10, 100],
    connections: 50,
  },

  factors: ['command', 'values', 'threads', 'build'],
  subject: 'command',
  progress: ['valuesPerSecond', 'mainCpuMicros'],
  doubts: {
    generator: {
      mark: '*',
      text: `redis-benchmark was busy ${GENERATOR_LIMIT * 100} % of the time or more and may have limited the rate. Use the CPU time and the ceiling of this row instead.`,
      keepsRatios: true,
    },
  },
  baseline: ({ command }) => ({ command: isReading(String(command)) ? 'GET' : 'SET', values: 1 }),

  server: ({ connections, values }) => ({
    busy: connections,
    benchmark: true,
    fill: ({ socket }) => fillKeys(socket, Math.max(...values), VALUE.length),
  }),

  /** A single GET and a single SET are always included, because they are the baselines. */
  cases: ({ pipeline, values }) =>
    [
      ...product({ values: [...new Set([1, ...pipeline])], command: ['GET', 'SET'] }),
      ...product({ values, command: ['MGET', 'MSET'] }),
    ].toSorted((a, b) => a.values - b.values),
  warmUp: (cases) => cases,

  async measure(one, { server }, { round, options, context: { signal } }) {
    const [command, values] = [String(one.command), Number(one.values)]
    const keys = isVariadic(command) ? values : 1
    const pipeline = values / keys
    const first = (FIRST_REQUESTS * Math.min(pipeline, 10)) / Math.min(keys, 20)
    const wanted = round === 0 ? first : options.duration * (rates.get(one) ?? 0)
    const requests = Math.max(options.connections * pipeline, Math.ceil(wanted))
    const args = `-p ${server.port} -c ${options.connections} -n ${requests} -P ${pipeline} ${command}`
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

  sections: (_, { options: { connections, clients = connections } }) => [
    {
      title: 'Many values in one round trip',
      caption: `redis-benchmark, ${clients} clients`,
      columns: [
        range('valuesPerSecond'),
        ratio('valuesPerSecond', '× one value'),
        fromArticles('articles values/s', articles, 'command', 'values'),
        'p50',
        'p99',
        range('mainCpuMicros', 'main thread CPU µs /value'),
        'ceiling',
        'redisBusy',
        'generatorBusy',
      ],
    },
  ],
}
