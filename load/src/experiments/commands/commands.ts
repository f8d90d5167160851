import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { addBuilds, type BuildsOptions } from '../../drivers/redis/options.ts'
import { redisBenchmark, requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure, percent } from '../../experiment/figures.ts'
import { asCpu, asRate, type Case, product } from '../../experiment/shape.ts'
import { bars } from '../../reporting/charts.ts'
import { documented, range, ratio, tableOf } from '../../reporting/columns.ts'

interface CommandsOptions extends BuildsOptions {
  clients: number
  requests: number
}

interface Bench {
  serverOf: (one: Case) => RedisServer
  /** Path of redis-benchmark. */
  program: string
}

/** redis-benchmark's default tests in its order: arguments, and commands per second in the documents. */
const tests: Readonly<Record<string, readonly [args: string, documents?: number]>> = {
  'PING (inline)': ['-t ping_inline', 34_246.57],
  PING: ['-t ping_mbulk', 34_843.21],
  SET: ['-t set', 32_467.53],
  GET: ['-t get', 33_112.59],
  INCR: ['-t incr', 32_679.74],
  LPUSH: ['-t lpush', 33_333.33],
  RPUSH: ['-t rpush'],
  LPOP: ['-t lpop', 33_670.04],
  RPOP: ['-t rpop'],
  SADD: ['-t sadd', 33_222.59],
  HSET: ['-t hset'],
  SPOP: ['-t spop', 34_482.76],
  ZADD: ['-t zadd'],
  ZPOPMIN: ['-t zpopmin'],
  'LRANGE of 100': ['LRANGE mylist 0 99', 22_988.51],
  'LRANGE of 300': ['LRANGE mylist 0 299', 13_888.89],
  'LRANGE of 500': ['LRANGE mylist 0 499'],
  'LRANGE of 600': ['LRANGE mylist 0 599', 9_041.59],
  'MSET of 10': ['-t mset', 24_213.08],
  XADD: ['-t xadd'],
}

/** These need a list, which is filled before: `-t lrange_100` would measure that, too. */
const READS_LIST = /^([LR]POP|LRANGE)/

const documents = {
  unit: 'commands/s',
  source: 'Redis性能优化方案, from Redis in Action, listing 10: redis-benchmark -c 1 -q',
}

/** What each command costs, as the documents' listing 10 shows it. */
export const commands: Experiment<CommandsOptions, Bench> = {
  name: 'commands',
  title: 'Redis: command by command',
  summary: "redis-benchmark's default tests with one client",
  group: 'Redis',
  about: `
The documents' listing 10 is "redis-benchmark -c 1 -q": one client sends one command after the other, so
its rate is an upper bound for a client that waits for each reply. This runs the default tests of our
build's redis-benchmark over TCP, with the documents' figures beside where the command is the same.

With one client most of the time goes into the round trip: PING and SET are nearly alike. What the
command itself takes is in the CPU time of Redis's main thread.

Examples:
  npm run load -- commands --quick
  npm run load -- commands -c 50 -n 100000
  npm run load -- commands --builds stock,patched`,
  rounds: 3,
  duration: null,
  quick: { rounds: 1, requests: 2_000 },
  seconds: { quick: 8, usual: 60, full: 60 },
  configure(command) {
    addBuilds(command, ['patched'])
    command
      .option('-c, --clients <n>', 'connections', wholeNumber(1, 1_000), 1)
      .option('-n, --requests <n>', 'commands of each test', wholeNumber(1_000, 10_000_000), 20_000)
  },

  factors: [
    { name: 'command', label: 'command' },
    { name: 'build', label: 'build' },
  ],
  subject: 'command',
  metrics: [
    { name: 'perSecond', label: 'commands/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCpu, least: 0.1 },
    { name: 'p50', label: 'p50 µs' },
    { name: 'p99', label: 'p99 µs' },
  ],
  progress: ['perSecond', 'mainCpuMicros'],
  loadOptions: ['clients', 'requests'],
  baseline: () => ({ command: 'PING' }),

  async prepare(context, { builds }) {
    const program = await requireRedisBenchmark(context.signal)
    const serverOf = await redisForEach(context, product({ build: builds }), (one) =>
      context.startRedis(one),
    )
    return { serverOf, program }
  },

  cases: (_, { builds }) => product({ command: Object.keys(tests), build: builds }),

  async measure(one, { serverOf, program }, { options, context: { signal } }) {
    const server = serverOf(one)
    const { clients, requests } = options
    const name = String(one.command)
    const run = (test = '') => {
      const args = `-p ${server.port} -c ${clients} -n ${requests} ${test}`.split(' ')
      return redisBenchmark(program, args, signal)
    }
    if (READS_LIST.test(name)) await run('-t lpush')
    const { result, cpu } = await cpuDuring(server, () => run(tests[name]?.[0]))
    const { perSecond, p50, p99, command } = result
    const { mainCpuMicros } = microsPer(cpu, requests)
    return {
      values: { perSecond, mainCpuMicros, p50: p50 * 1_000, p99: p99 * 1_000 },
      details: { command },
    }
  },

  sections(rows, { options: { clients, requests } }) {
    const [build, ...others] = rows.values('build')
    return [
      {
        title: 'Command by command',
        tables: [
          tableOf(rows, {
            caption: `redis-benchmark -c ${clients} -n ${requests}`,
            columns: [
              range('perSecond', rows),
              ...(clients === 1 ? [documented('perSecond', 'documents commands/s')] : []),
              ratio('perSecond', '× PING'),
              range('mainCpuMicros', rows),
              ...(build && others.length > 0
                ? [ratio('mainCpuMicros', `CPU × ${build}`, { build })]
                : []),
              ...['p50', 'p99'],
            ],
          }),
        ],
        charts: rows
          .by('build')
          .map(({ value, rows: own }) => bars(own, 'perSecond', `Commands per second, ${value}`)),
      },
    ]
  },
  claims: (rows) =>
    rows.where({ command: 'PING' }).all.flatMap((row) => {
      const [rate, micros] = [row.median('perSecond'), row.median('mainCpuMicros')]
      if (!rate || !micros) return []
      return [
        `${row.text('build')}: ${figure(rate)} PING/s, for which Redis's main thread works ${percent((rate * micros) / 1e6)} of the time. The rest of the time it waits for the next command.`,
      ]
    }),
  published: [
    ...Object.entries(tests).flatMap(([command, [, value]]) =>
      value ? [{ ...documents, what: command, value, case: { command }, metric: 'perSecond' }] : [],
    ),
    { ...documents, what: 'LPUSH (again, for LRANGE)', value: 33_222.59 },
    { ...documents, what: 'LRANGE of 450', value: 11_061.95 },
  ],
}
