import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { addBuilds, type BuildsOptions } from '../../drivers/redis/options.ts'
import { redisBenchmark, requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure, percent } from '../../experiment/figures.ts'
import { asCpu, asRate, type Case, product } from '../../experiment/shape.ts'
import { fromArticles, range, ratio, sectionOf } from '../../reporting/columns.ts'

/** The default tests of redis-benchmark: arguments, and commands per second in the source articles. */
const tests: Readonly<Record<string, readonly [args: string, inArticles?: number]>> = {
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

/** These tests need a list. It is filled before the measurement; `-t lrange_100` would include that. */
const READS_LIST = /^([LR]POP|LRANGE)/

const articles = Object.fromEntries(
  Object.entries(tests).map(([command, [, value = '']]) => [command, value]),
)

/** Rate and CPU time by command, like listing 10 of the source articles. */
export const commands: Experiment<
  BuildsOptions & { requests: number },
  (one: Case) => RedisServer
> = {
  name: 'commands',
  title: 'Redis: command by command',
  summary: 'the default tests of redis-benchmark with one client',
  group: 'Redis',
  about: `
Listing 10 of the source articles is "redis-benchmark -c 1 -q": one client sends one command after the other. Its
rate is an upper bound for a client that waits for each reply. Most of the time is spent on the round trip; the
CPU time of Redis's main thread shows the cost of the command.

Examples:
  npm run load -- commands --builds stock,patched`,
  rounds: 3,
  duration: null,
  quick: { rounds: 1, requests: 2_000 },
  configure(command) {
    addBuilds(command, ['patched'])
    const count = wholeNumber(1_000, 10_000_000)
    command.option('--requests <n>', 'number of commands in each test', count, 20_000)
  },

  factors: [{ name: 'command' }, { name: 'build' }],
  subject: 'command',
  metrics: [
    { name: 'perSecond', label: 'commands/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCpu },
    { name: 'p50', label: 'p50 µs' },
    { name: 'p99', label: 'p99 µs' },
  ],
  progress: ['perSecond', 'mainCpuMicros'],
  baseline: () => ({ command: 'PING' }),

  async prepare(context, { builds }) {
    await requireRedisBenchmark(context.signal)
    return await redisForEach(context, product({ build: builds }), context.startRedis)
  },

  cases: (_, { builds }) => product({ command: Object.keys(tests), build: builds }),

  async measure(one, serverOf, { options: { requests }, context: { signal } }) {
    const server = serverOf(one)
    const name = String(one.command)
    const run = (test = '') =>
      redisBenchmark(`-p ${server.port} -c 1 -n ${requests} ${test}`.split(' '), signal)
    if (READS_LIST.test(name)) await run('-t lpush')
    const { result, cpu } = await cpuDuring(server, () => run(tests[name]?.[0]))
    const { perSecond, p50, p99, command } = result
    return {
      values: { perSecond, p50: p50 * 1_000, p99: p99 * 1_000, ...microsPer(cpu, requests) },
      details: { command },
    }
  },

  sections: (rows, { options }) => [
    sectionOf(rows, {
      title: 'Command by command',
      paragraphs: ['The source articles: Redis性能优化方案, listing 10, from Redis in Action.'],
      caption: `redis-benchmark -c 1 -n ${options.requests}`,
      columns: [
        range('perSecond', rows),
        fromArticles('articles commands/s', articles, 'command'),
        ratio('perSecond', '× PING'),
        ...[range('mainCpuMicros', rows), 'p50', 'p99'],
      ],
    }),
  ],
  claims: (rows) =>
    rows.where({ command: 'PING' }).all.map((row) => {
      const [rate, micros] = [row.median('perSecond') ?? 0, row.median('mainCpuMicros') ?? 0]
      return `${row.text('build')}: at ${figure(rate)} PING/s, Redis's main thread works ${percent((rate * micros) / 1e6)} of the time. The rest of the time, it waits for the next command.`
    }),
}
