import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { addBuilds, type BuildsOptions } from '../../drivers/redis/options.ts'
import { redisBenchmark, requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure, percent } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import { bars } from '../../reporting/charts.ts'
import { type Column, documented, range, ratio, tableOf } from '../../reporting/columns.ts'

interface CommandsOptions extends BuildsOptions {
  clients: number
  requests: number
}

interface Bench {
  servers: Map<string, RedisServer>
  /** Path of redis-benchmark. */
  program: string
}

interface Test {
  /** For redis-benchmark: a test of its own, or the command. */
  readonly args: string
  /** Whether it reads a list, which is filled before: outside of the measured time. */
  readonly readsList?: boolean
  /** Commands per second. */
  readonly documents?: number
}

/** redis-benchmark's default tests, in its order; `-t lrange_100` would measure filling the list, too. */
const tests = new Map<string, Test>([
  ['PING (inline)', { args: '-t ping_inline', documents: 34_246.57 }],
  ['PING', { args: '-t ping_mbulk', documents: 34_843.21 }],
  ['SET', { args: '-t set', documents: 32_467.53 }],
  ['GET', { args: '-t get', documents: 33_112.59 }],
  ['INCR', { args: '-t incr', documents: 32_679.74 }],
  ['LPUSH', { args: '-t lpush', documents: 33_333.33 }],
  ['RPUSH', { args: '-t rpush' }],
  ['LPOP', { args: '-t lpop', documents: 33_670.04, readsList: true }],
  ['RPOP', { args: '-t rpop', readsList: true }],
  ['SADD', { args: '-t sadd', documents: 33_222.59 }],
  ['HSET', { args: '-t hset' }],
  ['SPOP', { args: '-t spop', documents: 34_482.76 }],
  ['ZADD', { args: '-t zadd' }],
  ['ZPOPMIN', { args: '-t zpopmin' }],
  ['LRANGE of 100', { args: 'LRANGE mylist 0 99', documents: 22_988.51, readsList: true }],
  ['LRANGE of 300', { args: 'LRANGE mylist 0 299', documents: 13_888.89, readsList: true }],
  ['LRANGE of 500', { args: 'LRANGE mylist 0 499', readsList: true }],
  ['LRANGE of 600', { args: 'LRANGE mylist 0 599', documents: 9_041.59, readsList: true }],
  ['MSET of 10', { args: '-t mset', documents: 24_213.08 }],
  ['XADD', { args: '-t xadd' }],
])

const source = 'Redis性能优化方案, from Redis in Action, listing 10: redis-benchmark -c 1 -q'
const documents = { unit: 'commands/s', source }

/** What each command costs, as the documents' listing 10 shows it. */
export const commands: Experiment<CommandsOptions, Bench> = {
  name: 'commands',
  title: 'Redis: command by command',
  summary: "redis-benchmark's default tests with one client",
  group: 'Redis',
  about: `
The documents' listing 10 is "redis-benchmark -c 1 -q": one client sends one command after the other,
so that its rate is an upper bound for a client of yours that waits for each reply. This runs the
default tests of our build's redis-benchmark against our build over TCP. The documents' figures stand
beside ours where the command is the same.

With one client most of the time goes into the round trip, which is why PING and SET are nearly alike.
What the command itself takes is in the CPU time of Redis's main thread.

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
    {
      ...{ name: 'perSecond', label: 'commands/s', unit: 'commands/s' },
      ...{ kind: 'pace', better: 'higher', least: 0.1 },
    },
    {
      ...{ name: 'mainCpuMicros', label: 'main thread CPU µs /command', unit: 'µs/command' },
      ...{ kind: 'cpu', better: 'lower', least: 0.1 },
    },
    { name: 'p50', label: 'p50 µs', unit: 'µs' },
    { name: 'p99', label: 'p99 µs', unit: 'µs' },
  ],
  progress: ['perSecond', 'mainCpuMicros'],
  loadOptions: ['clients', 'requests'],
  baseline: () => ({ command: 'PING' }),

  async prepare(context, { builds }) {
    const program = await requireRedisBenchmark(context.signal)
    const servers: Bench['servers'] = new Map()
    for (const build of builds) servers.set(build, await context.startRedis({ build }))
    return { servers, program }
  },

  cases: (_, { builds }) =>
    [...tests.keys()].flatMap((command) => builds.map((build) => ({ command, build }))),

  async measure({ command, build }, { servers, program }, { options, context: { signal } }) {
    const [server, test] = [servers.get(String(build)), tests.get(String(command))]
    if (!server || !test) throw new RangeError(`there is no ${build}, or no ${command}`)
    const { clients, requests } = options
    const args = ['-p', server.port, '-c', clients, '-n', requests].map(String)
    const run = (test: string) =>
      redisBenchmark({ program, args: [...args, ...test.split(' ')], signal })
    if (test.readsList) await run('-t lpush')
    const before = await server.cpu()
    const { perSecond, p50, p99, command: line } = await run(test.args)
    const { mainCpuSeconds } = cpuBetween(before, await server.cpu())
    const mainCpuMicros = (mainCpuSeconds * 1e6) / requests
    return {
      values: { perSecond, mainCpuMicros, p50: p50 * 1_000, p99: p99 * 1_000 },
      details: { command: line },
    }
  },

  sections: (rows, { options: { clients, requests } }) => [
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
            ...againstFirst(rows),
            ...['p50', 'p99'],
          ],
        }),
      ],
      charts: rows
        .by('build')
        .map(({ value, rows }) => bars(rows, 'perSecond', `Commands per second, ${value}`)),
    },
  ],
  claims: (rows) =>
    rows.where({ command: 'PING' }).all.flatMap((row) => {
      const [rate, micros] = [row.median('perSecond'), row.median('mainCpuMicros')]
      if (!rate || !micros) return []
      return [
        `${row.text('build')}: ${figure(rate)} PING/s, for which Redis's main thread works ${percent((rate * micros) / 1e6)} of the time. The rest of the time it waits for the next command.`,
      ]
    }),
  published: [
    ...[...tests].flatMap(([what, { documents: value }]) =>
      value ? [{ ...documents, what, value, case: { command: what }, metric: 'perSecond' }] : [],
    ),
    { ...documents, what: 'LPUSH (again, for LRANGE)', value: 33_222.59 },
    { ...documents, what: 'LRANGE of 450', value: 11_061.95 },
  ],
}

/** A column that compares the CPU time of several builds. */
function againstFirst(rows: Rows): Column[] {
  const [first, ...others] = rows.values('build')
  if (first === undefined || others.length === 0) return []
  return [ratio('mainCpuMicros', `CPU × ${first}`, { build: first })]
}
