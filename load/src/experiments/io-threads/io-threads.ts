import { availableParallelism } from 'node:os'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { limitedByGenerator, measureLoad } from '../../drivers/redis/cost.ts'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import { addBuilds, type BuildsOptions, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { asCpu, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import { chartsOf } from '../../reporting/charts.ts'
import { documented, errors, range, ratio, sectionOf } from '../../reporting/columns.ts'

interface IoThreadsOptions extends BuildsOptions {
  threads: number[]
  connections: number
  rate?: number
}

const KEYS = 10_000
const BYTES = 100
const value = 'x'.repeat(BYTES)
const LIST = 'list'
const commands: Readonly<Record<string, readonly string[]>> = {
  SET: ['SET', '{key}', value],
  GET: ['GET', '{key}'],
  'MGET of 10': ['MGET', ...new Array<string>(10).fill('{key}')],
  LPUSH: ['LPUSH', LIST, value],
}

/** What the documents measured, by command and threads. */
const documents = {
  SET: { 1: 85_200, 4: 210_300 },
  GET: { 1: 87_500, 4: 215_800 },
  'MGET of 10': { 1: 42_100, 4: 68_700 },
  LPUSH: { 1: 78_900, 4: 195_400 },
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
with eight: then the main thread, which executes all commands, is the limit. As there, values have ${BYTES}
bytes and each connection sends one command at a time. The setting counts the main thread.

Rates rise only where Redis's threads and the load have cores. What carries over from a small machine is
the main thread's CPU time per command; its inverse is the ceiling, the rate at which it would have no
time left. At a fixed --rate latencies can be compared, but each command costs the main thread more.

Examples:
  npm run load -- io-threads --threads 1,2,4,8 --connections 400
  npm run load -- io-threads --builds stock,patched --threads 1,2 --rate 20000`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.4 },
  seconds: { quick: null, usual: 60, full: 60 },
  configure(command) {
    addBuilds(command, ['patched'])
    const defaults = [1, 2, 4, 8].filter((threads) => threads <= Math.max(2, 2 * cores))
    const text = 'settings of io-threads, up to twice the cores by default'
    command
      .addOption(numbersOption('--threads <list>', text, [1, 128], defaults))
      .option('--connections <n>', 'long ones', wholeNumber(1, 10_000), 100)
      .option('--rate <n>', 'commands/s in all (default: no limit)', wholeNumber(1, 1_000_000))
  },
  isolated: ({ builds }) => builds,

  factors: [{ name: 'command' }, { name: 'build' }, { name: 'threads', label: 'I/O threads' }],
  subject: 'threads',
  metrics: [
    { name: 'perSecond', label: 'commands/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCpu, least: 0.1 },
    { name: 'cpuMicros', label: 'all threads CPU µs /command', ...asCpu, least: 0.1 },
    { name: 'ceiling', label: 'ceiling commands/s' },
    { name: 'below1', label: 'below 1 ms', format: 'percent' },
    { name: 'above2', label: 'over 2 ms', format: 'percent' },
    { name: 'p99', label: 'p99 ms', ...asLatency },
  ],
  progress: ['perSecond', 'mainCpuMicros', 'below1'],
  doubts: {
    generator: limitedByGenerator,
    crowded: {
      mark: '!',
      text: 'More threads than this machine has cores, beside the load: the rate shows what crowding costs, not what the threads are worth.',
    },
  },
  loadOptions: ['connections', 'rate'],
  baseline: (_, cases) => ({ threads: Math.min(...cases.map(({ threads }) => Number(threads))) }),

  async prepare(context, { builds, threads, connections }) {
    await requireConnections(connections)
    const filled = { keys: KEYS, bytes: BYTES, busy: connections }
    return await redisForEach(context, product({ build: builds, threads }), (one) => {
      const config = { 'io-threads': String(one.threads) }
      return startFilledRedis(context, { ...filled, ...one, config })
    })
  },

  cases: (_, { builds, threads }) =>
    product({ command: Object.keys(commands), build: builds, threads }),

  async measure(one, serverOf, { options, context: { signal } }) {
    const server = serverOf(one)
    const { connections, rate = 0, duration } = options
    const load = { target: server, mode: 'long', keys: KEYS, signal } as const
    const { values, errors, doubts } = await measureLoad(server, {
      ...{ ...load, connections, rate, end: { seconds: duration } },
      command: commands[String(one.command)] ?? [],
    })
    // Outside of the measured time: it grows with every LPUSH.
    await generateLoad({ ...load, connections: 1, end: { replies: 1 }, command: ['DEL', LIST] })
    return {
      values: { ...values, ceiling: 1e6 / values.mainCpuMicros },
      errors,
      doubts: Number(one.threads) > cores ? [...doubts, 'crowded'] : doubts,
    }
  },

  sections: (rows, { options: { connections, rate } }) => [
    sectionOf(rows, {
      title: 'Commands with and without I/O threads',
      paragraphs: ['The documents: Redis双核架构实测QPS; Redis 6.2.6, 24 cores, memtier.'],
      charts: chartsOf(rows, 'perSecond'),
      caption: `${connections} long connections over TCP, one command at a time each${rate === undefined ? '' : `, ${figure(Number(rate))} commands/s in all`}`,
      columns: [
        range('perSecond', rows),
        ratio('perSecond', '× fewest threads'),
        documented('documents commands/s', documents, 'command', 'threads'),
        ...['below1', 'above2', 'p99'],
        ...[range('mainCpuMicros', rows), 'cpuMicros', 'ceiling', errors],
      ],
    }),
  ],
  claims: (rows, { machine }) => [
    'The ceiling is a projection: what the main thread could do if it never waited for a core or for its I/O threads. The more commands it finds waiting, the cheaper each is: at full speed on few cores take it as an upper bound, at a fixed rate as a lower one.',
    Math.max(...rows.values('threads').map(Number)) + 1 > machine.cores &&
      `Redis and the load share ${machine.cores} cores here: compare ceilings, not rates.`,
  ],
}
