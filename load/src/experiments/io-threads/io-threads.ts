import { availableParallelism } from 'node:os'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import { limitedByGenerator, measureLoad } from '../../drivers/redis/cost.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import { addBuilds, type BuildsOptions, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import {
  asCpu,
  asLatency,
  asRate,
  type Case,
  type Published,
  product,
} from '../../experiment/shape.ts'
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

const LIST = 'list'
const VALUE = '{value}'
const commands: Readonly<Record<string, readonly string[]>> = {
  SET: ['SET', '{key}', VALUE],
  GET: ['GET', '{key}'],
  'MGET of 10': ['MGET', ...new Array<string>(10).fill('{key}')],
  LPUSH: ['LPUSH', LIST, VALUE],
}

const cores = availableParallelism()

/** What Redis's I/O threads take off its main thread. */
export const ioThreads: Experiment<IoThreadsOptions, (one: Case) => RedisServer> = {
  name: 'io-threads',
  title: 'Redis: I/O threads',
  summary: 'SET, GET, MGET of 10 and LPUSH with 1 to 8 I/O threads',
  group: 'Redis',
  about: `
The documents' Redis 6.2 on 24 cores went from 87,500 to 215,800 GET/s with four threads, and no higher
with eight: then the main thread, which executes all commands, is the limit. As there, values have 100
bytes and each connection sends one command at a time. The setting counts the main thread.

Rates rise only where Redis's threads and the load have cores. What carries over from a small machine is
the main thread's CPU time per command; its inverse is the ceiling, the rate at which it would have no
time left. At a fixed --rate latencies can be compared, but each command costs the main thread more.

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
    const defaults = [1, 2, 4, 8].filter((threads) => threads <= Math.max(2, 2 * cores))
    const text = 'settings of io-threads, up to twice the cores by default'
    command
      .addOption(numbersOption('--threads <list>', text, { min: 1, max: 128, defaults }))
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
    { name: 'commandsPerSecond', label: 'commands/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCpu, least: 0.1 },
    { name: 'cpuMicros', label: 'all threads CPU µs /command', ...asCpu, least: 0.1 },
    { name: 'ceiling', label: 'ceiling commands/s' },
    { name: 'below1', label: 'below 1 ms', format: 'percent' },
    { name: 'above2', label: 'over 2 ms', format: 'percent' },
    { name: 'p99', label: 'p99 ms', ...asLatency },
  ],
  progress: ['commandsPerSecond', 'mainCpuMicros', 'below1'],
  doubts: {
    generator: limitedByGenerator,
    crowded: {
      mark: '!',
      text: 'More threads than this machine has cores, beside the load: the rate shows what crowding costs, not what the threads are worth.',
    },
  },
  loadOptions: ['connections', 'keys', 'bytes', 'rate'],
  baseline: (_, cases) => ({ threads: Math.min(...cases.map(({ threads }) => Number(threads))) }),

  async prepare(context, { builds, threads, connections, keys, bytes }) {
    await requireConnections(connections)
    return await redisForEach(context, product({ build: builds, threads }), (one) => {
      const config = { 'io-threads': String(one.threads) }
      return startFilledRedis(context, { ...one, config, keys, bytes, busy: connections })
    })
  },

  cases: (_, { builds, threads }) =>
    product({ command: Object.keys(commands), build: builds, threads }),

  async measure(one, serverOf, { options, context: { signal } }) {
    const server = serverOf(one)
    const { connections, keys, rate, duration, bytes } = options
    const words = commands[String(one.command)] ?? []
    const run = await measureLoad(server, {
      ...{ target: server, mode: 'long', connections, keys, signal },
      end: { seconds: duration },
      command: words.map((word) => (word === VALUE ? 'x'.repeat(bytes) : word)),
      ...(rate !== undefined && { rate }),
    })
    await emptyList(server)
    const { perSecond, mainCpuMicros, cpuMicros, errors, doubts } = run
    const { below1, above2, p99 } = run.latency
    return {
      values: {
        ...{ commandsPerSecond: perSecond, mainCpuMicros, cpuMicros },
        ...{ ceiling: 1e6 / mainCpuMicros, below1, above2, p99 },
      },
      errors,
      doubts: Number(one.threads) > cores ? [...doubts, 'crowded'] : doubts,
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
          ...{ metric: 'commandsPerSecond', over: 'threads', by: 'build' },
          title: `${value}, commands per second by I/O threads`,
        }),
      ),
    },
  ],
  claims: (rows, { options, machine }) => [
    `The ceiling is a projection: what the main thread could do if it never waited for a core or for its I/O threads. It takes a core for each thread of Redis and as many for the load as that needs. ${
      options.rate === undefined
        ? 'Where cores are short, the main thread finds more commands waiting each time it runs, which makes each cheaper: take it as an upper bound.'
        : 'At a fixed rate the main thread finds few commands each time it runs, which makes each dearer than under full load: take it as a lower bound.'
    }`,
    ...(Math.max(...rows.values('threads').map(Number)) + 1 > machine.cores
      ? [`Redis and the load share ${machine.cores} cores here: compare ceilings, not rates.`]
      : []),
  ],
  published: [
    ...documents('commands/s', 'SET', { 1: 85_200, 4: 210_300 }),
    ...documents('commands/s', 'GET', { 1: 87_500, 4: 215_800 }),
    ...documents('commands/s', 'MGET of 10', { 1: 42_100, 4: 68_700 }),
    ...documents('commands/s', 'LPUSH', { 1: 78_900, 4: 195_400 }),
    ...documents('commands/s', 'all', { 1: 86_200, 2: 165_400, 4: 210_300, 8: 208_700 }),
    ...documents('%', 'below 1 ms', { 1: 89, 4: 97 }),
    ...documents('%', 'over 2 ms', { 1: 3, 4: 1 }),
  ],
}

/** What the documents measured with so many threads; figures of a command stand beside its row. */
function documents(
  unit: string,
  command: string,
  byThreads: Readonly<Record<number, number>>,
): Published[] {
  return Object.entries(byThreads).map(([threads, value]) => ({
    ...{ what: `${command}, ${counted(Number(threads), 'thread')}`, value, unit },
    ...{ case: { command, threads: Number(threads) }, metric: 'commandsPerSecond' },
    source: 'Redis双核架构实测QPS: Redis 6.2.6, 24 cores, memtier, values of 100 bytes',
  }))
}

/** Outside of the measured time: it grows with every LPUSH. */
async function emptyList({ socket }: RedisServer): Promise<void> {
  const client = new Redis(socket)
  try {
    await client.del(LIST)
  } finally {
    client.disconnect()
  }
}
