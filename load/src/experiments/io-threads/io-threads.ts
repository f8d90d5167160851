import { availableParallelism } from 'node:os'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import { isLimitedByGenerator } from '../../drivers/generator-limit.ts'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { fillKeys } from '../../drivers/redis/keys.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import { addBuilds, type BuildsOptions, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Published } from '../../experiment/shape.ts'
import { lines } from '../../reporting/charts.ts'
import { documented, errors, range, ratio, tableOf } from '../../reporting/columns.ts'

interface IoThreadsOptions extends BuildsOptions {
  threads: number[]
  connections: number
  keys: number
  bytes: number
  /** Commands per second; undefined: as fast as they go. */
  rate?: number
}

interface Bench {
  servers: Map<string, RedisServer>
  commands: Map<string, readonly string[]>
}

const LIST = 'list'
const source = 'Redis双核架构实测QPS: Redis 6.2.6, 24 cores, memtier, values of 100 bytes'
const cores = availableParallelism()
const serverKey = (build: string | number | undefined, threads: string | number | undefined) =>
  `${build} ${threads}`

/** What Redis's I/O threads take off its main thread. */
export const ioThreads: Experiment<IoThreadsOptions, Bench> = {
  name: 'io-threads',
  title: 'Redis: I/O threads',
  summary: 'SET, GET, MGET of 10 and LPUSH with 1 to 8 I/O threads',
  group: 'Redis',
  about: `
The documents' Redis 6.2 on 24 cores went from 87,500 to 215,800 GET/s with four threads, and no higher
with eight: then the main thread, which executes all commands, is the limit. Pipelines are off (one
command at a time per connection), values have 100 bytes, as in the documents. The setting counts
the main thread.

Rates only rise where there are cores for Redis's threads and for the load. What carries over from a
small machine is the main thread's CPU time per command: its inverse is the ceiling, the rate at which
the main thread would have no time left. The ceiling is a projection, not a measurement. At a fixed
--rate the threads do not crowd each other: latencies can then be compared, and the main thread finds
fewer commands at a time, so that each costs it more.

Examples:
  npm run load -- io-threads --quick
  npm run load -- io-threads --threads 1,2,4,8 --connections 400
  npm run load -- io-threads --threads 1,2 --rate 20000
  npm run load -- io-threads --builds stock,patched --threads 1,2`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.4 },
  seconds: { quick: null, usual: 60, full: 60 },
  configure(command) {
    addBuilds(command, ['patched'])
    const most = Math.max(2, 2 * cores)
    const defaults = [1, 2, 4, 8].filter((threads) => threads <= most)
    const told = 'settings of io-threads, up to twice the cores by default'
    command
      .addOption(numbersOption('--threads <list>', told, { min: 1, max: 128, defaults }))
      .option('--connections <n>', 'long ones', wholeNumber(1, 10_000), 100)
      .option('--keys <n>', 'different keys', wholeNumber(1, 1_000_000), 10_000)
      .option('--bytes <n>', 'length of a value', wholeNumber(1, 10_000), 100)
      .option('--rate <n>', 'commands/s in all (default: no limit)', wholeNumber(1, 1_000_000))
  },
  isolated: ({ builds }) => builds,

  factors: [
    { name: 'command', label: 'command' },
    { name: 'build', label: 'build' },
    { name: 'threads', label: 'I/O threads' },
  ],
  subject: 'threads',
  metrics: [
    metric('commandsPerSecond', 'commands/s', 'pace', 'higher'),
    metric('mainCpuMicros', 'main thread CPU µs /command', 'cpu', 'lower'),
    metric('cpuMicros', 'all threads CPU µs /command', 'cpu', 'lower'),
    { name: 'ceiling', label: 'ceiling commands/s', unit: 'commands/s' },
    { name: 'below1', label: 'below 1 ms', unit: 'share', format: 'percent' },
    { name: 'above2', label: 'over 2 ms', unit: 'share', format: 'percent' },
    { ...metric('p99', 'p99 ms', 'pace', 'lower'), unit: 'ms', least: 0.01 },
  ],
  progress: ['commandsPerSecond', 'mainCpuMicros', 'below1'],
  doubts: {
    generator: {
      mark: '*',
      text: "The generator was busy all the time, Redis was not: the rate is the generator's.",
    },
    crowded: {
      mark: '!',
      text: `More threads than this machine has cores, beside the load: the rate shows what crowding costs, not what the threads are worth.`,
    },
  },
  loadOptions: ['connections', 'keys', 'bytes', 'rate'],
  baseline: (_, cases) => ({ threads: Math.min(...cases.map(({ threads }) => Number(threads))) }),

  async prepare(context, { builds, threads, connections, keys, bytes }) {
    await requireConnections(connections)
    const servers: Bench['servers'] = new Map()
    for (const build of builds) {
      for (const count of threads) {
        const server = await context.startRedis({ build, config: { 'io-threads': String(count) } })
        await fillKeys(server, keys, bytes)
        servers.set(serverKey(build, count), server)
      }
    }
    const value = 'x'.repeat(bytes)
    const commands = new Map([
      ['SET', ['SET', '{key}', value]],
      ['GET', ['GET', '{key}']],
      ['MGET of 10', ['MGET', ...Array.from({ length: 10 }, () => '{key}')]],
      ['LPUSH', ['LPUSH', LIST, value]],
    ])
    return { servers, commands }
  },

  cases: ({ commands }, { builds, threads }) =>
    [...commands.keys()].flatMap((command) =>
      builds.flatMap((build) => threads.map((count) => ({ command, build, threads: count }))),
    ),

  async measure({ command, build, threads }, { servers, commands }, { options, context, update }) {
    const server = servers.get(serverKey(build, threads))
    const words = commands.get(String(command))
    if (!server || !words) throw new RangeError(`no server for ${build}, or no ${command}`)
    const { connections, keys, rate, duration } = options
    const before = await server.cpu()
    const load = await generateLoad({
      target: server,
      mode: 'long',
      connections,
      end: { seconds: duration },
      command: words,
      keys,
      ...(rate !== undefined && { rate }),
      signal: context.signal,
      onProgress: (rate) => update(`${figure(rate)}/s`),
    })
    const cpu = cpuBetween(before, await server.cpu())
    await emptyList(server)
    const mainCpuMicros = (cpu.mainCpuSeconds * 1e6) / load.completed
    return {
      values: {
        commandsPerSecond: load.completed / load.seconds,
        mainCpuMicros,
        cpuMicros: (cpu.cpuSeconds * 1e6) / load.completed,
        ceiling: 1e6 / mainCpuMicros,
        below1: load.latency.below1,
        above2: load.latency.above2,
        p99: load.latency.p99,
      },
      errors: load.errors,
      doubts: [
        ...(isLimitedByGenerator(load.demand, cpu.mainDemand) ? ['generator'] : []),
        ...(Number(threads) > cores ? ['crowded'] : []),
      ],
    }
  },

  sections: (rows, { options: { connections, rate } }) => [
    {
      title: 'Commands with and without I/O threads',
      tables: [
        tableOf(rows, {
          caption: `${connections} long connections over TCP, one command at a time each${rate === undefined ? '' : `, ${figure(Number(rate))} commands/s in all`}`,
          columns: [
            range('commandsPerSecond', rows),
            ratio('commandsPerSecond', '× fewest threads'),
            documented('commandsPerSecond', 'documents commands/s'),
            ...['below1', 'above2', 'p99'],
            range('mainCpuMicros', rows),
            ...['cpuMicros', 'ceiling'],
            errors,
          ],
        }),
      ],
      charts: rows.by('command').map(({ value, rows: own }) =>
        lines(own, {
          metric: 'commandsPerSecond',
          over: 'threads',
          by: 'build',
          title: `${value}, commands per second by I/O threads`,
        }),
      ),
    },
  ],
  claims: (rows, { options }) => [
    `The ceiling is a projection: what the main thread could do if it never waited for a core or for its I/O threads. To reach it, a machine needs a core for each thread of Redis and as many for the load as it takes. ${boundText(options.rate !== undefined)}`,
    ...(mostThreads(rows) + 1 > cores
      ? [`Redis and the load share ${cores} cores here: compare ceilings, not rates.`]
      : []),
  ],
  published: [
    ...published('SET', 85_200, 210_300),
    ...published('GET', 87_500, 215_800),
    ...published('MGET of 10', 42_100, 68_700),
    ...published('LPUSH', 78_900, 195_400),
    { what: 'all, 1 thread', value: 86_200, unit: 'commands/s', source },
    { what: 'all, 2 threads', value: 165_400, unit: 'commands/s', source },
    { what: 'all, 4 threads', value: 210_300, unit: 'commands/s', source },
    { what: 'all, 8 threads', value: 208_700, unit: 'commands/s', source },
    { what: 'below 1 ms, 1 thread', value: 89, unit: '%', source },
    { what: 'below 1 ms, 4 threads', value: 97, unit: '%', source },
    { what: 'over 2 ms, 1 thread', value: 3, unit: '%', source },
    { what: 'over 2 ms, 4 threads', value: 1, unit: '%', source },
  ],
}

function metric<Kind extends 'pace' | 'cpu', Better extends 'higher' | 'lower'>(
  name: string,
  label: string,
  kind: Kind,
  better: Better,
) {
  return { name, label, unit: label, kind, better, least: 0.1 }
}

function published(command: string, one: number, four: number): Published[] {
  const common = { metric: 'commandsPerSecond', unit: 'commands/s', source }
  return [
    { ...common, what: `${command}, 1 thread`, value: one, case: { command, threads: 1 } },
    { ...common, what: `${command}, 4 threads`, value: four, case: { command, threads: 4 } },
  ]
}

const mostThreads = (rows: Rows) => Math.max(...rows.values('threads').map(Number))

const boundText = (fixedRate: boolean) =>
  fixedRate
    ? 'At a fixed rate the main thread finds few commands each time it runs, which makes each dearer than under full load: take it as a lower bound.'
    : 'Where cores are short, the main thread finds more commands waiting each time it runs, which makes each cheaper: take it as an upper bound.'

/** Outside the measured time: it grows with every LPUSH. */
async function emptyList({ socket }: RedisServer): Promise<void> {
  const client = new Redis(socket)
  try {
    await client.del(LIST)
  } finally {
    client.disconnect()
  }
}
