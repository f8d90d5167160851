import { availableParallelism } from 'node:os'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { fillKeys } from '../../drivers/redis/keys.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import {
  addBuilds,
  addRounds,
  type BuildsOptions,
  numbersOption,
  type RoundsOptions,
} from '../../drivers/redis/options.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import { figure, percent } from '../../table.ts'
import { ioThreadsFigures } from '../documents.ts'
import type { Context, Experiment, Server } from '../experiment.ts'
import { interleave, samplesOf } from '../rounds.ts'
import {
  ioThreadsConclusions,
  ioThreadsTable,
  summarizeThreads,
  type ThreadsRun,
} from './io-threads-report.ts'

interface IoThreadsOptions extends RoundsOptions, BuildsOptions {
  threads: number[]
  connections: number
  keys: number
  bytes: number
  /** Commands per second; undefined: as fast as they go. */
  rate?: number
}

const LIST = 'list'

/** What Redis's I/O threads take off its main thread. */
export const ioThreads: Experiment<IoThreadsOptions> = {
  name: 'io-threads',
  summary: 'SET, GET, MGET of 10 and LPUSH with 1 to 8 I/O threads',
  about: `
The documents' Redis 6.2 on 24 cores went from 87,500 to 215,800 GET/s with four threads, and no higher
with eight: then the main thread, which executes all commands, is the limit. Pipelines are off (one
command at a time per connection), values have 100 bytes, as in the documents. The setting counts
the main thread.

Rates only rise where there are cores for Redis's threads and for the load. What carries over from a
small machine is the main thread's CPU time per command: its inverse is the ceiling, the rate at which
the main thread would have no time left. The ceiling is a projection, not a measurement. Thread counts
above the number of cores are marked !. At a fixed --rate the threads do not crowd each other: latencies
can then be compared, and the main thread finds fewer commands at a time, so that each costs it more.

Examples:
  npm run load -- redis io-threads --quick
  npm run load -- redis io-threads --threads 1,2,4,8 --connections 400
  npm run load -- redis io-threads --threads 1,2 --rate 20000
  npm run load -- redis io-threads --builds stock,patched --threads 1,2`,

  configure(command) {
    const most = Math.max(2, 2 * availableParallelism())
    addRounds(command, { rounds: 3, duration: 1 })
    addBuilds(command, ['patched'])
    command
      .addOption(
        numbersOption(
          '--threads <list>',
          'settings of io-threads, up to twice the cores by default',
          {
            ...{ min: 1, max: 128 },
            defaults: [1, 2, 4, 8].filter((threads) => threads <= most),
          },
        ),
      )
      .option('--connections <n>', 'long ones', wholeNumber(1, 10_000), 100)
      .option('--keys <n>', 'different keys', wholeNumber(1, 1_000_000), 10_000)
      .option('--bytes <n>', 'length of a value', wholeNumber(1, 10_000), 100)
      .option(
        '--rate <n>',
        'commands per second in all (default: as fast as they go)',
        wholeNumber(1, 1_000_000),
      )
  },
  quick: { rounds: 1, duration: 0.4 },
  isolated: ({ builds }) => builds,

  async run(context, options) {
    const { rounds, duration, builds, threads, connections, keys, bytes, rate } = options
    await requireConnections(connections)
    const servers: { server: Server; threads: number }[] = []
    for (const build of builds) {
      for (const count of threads) {
        const server = await context.startRedis({ build, config: { 'io-threads': String(count) } })
        await fillKeys(server, keys, bytes)
        servers.push({ server, threads: count })
      }
    }
    const value = 'x'.repeat(bytes)
    const commands = [
      { name: 'SET', command: ['SET', '{key}', value] },
      { name: 'GET', command: ['GET', '{key}'] },
      { name: 'MGET of 10', command: ['MGET', ...Array.from({ length: 10 }, () => '{key}')] },
      { name: 'LPUSH', command: ['LPUSH', LIST, value] },
    ]
    const variants = commands.flatMap((command) => servers.map((one) => ({ ...one, ...command })))
    const cores = availableParallelism()
    const label = ({ name, threads: count, server }: (typeof variants)[number]) =>
      [
        name.padEnd('MGET of 10'.length),
        `${count}${count > cores ? ' !' : '  '}`,
        ...(builds.length > 1 ? [server.build] : []),
      ].join('  ')
    const taken = await interleave(context, {
      variants,
      rounds,
      label,
      measure: ({ server, command }) =>
        measure(context, server, command, { ...options, seconds: duration }),
      describe: ({ commandsPerSecond, mainCpuMicros, latency }) =>
        `${figure(commandsPerSecond)}/s, ${figure(mainCpuMicros)} µs of the main thread, below 1 ms ${percent(latency.below1)}`,
    })
    const summaries = variants.map((variant) => {
      const { name, threads: count, server } = variant
      const base = variants.find(
        (other) =>
          other.name === name &&
          other.threads === threads[0] &&
          other.server.build === server.build,
      )
      return summarizeThreads({
        build: server.build,
        command: name,
        threads: count,
        label: label(variant),
        runs: samplesOf(taken, variant),
        base: base && base !== variant ? samplesOf(taken, base) : null,
      })
    })
    return {
      tables: [ioThreadsTable(summaries, { connections, rate, first: threads[0] ?? 1 })],
      conclusions: ioThreadsConclusions(summaries, { cores, rate }),
      documents: ioThreadsFigures,
      data: {
        summaries,
        samples: taken.map(({ variant, round, sample }) => ({
          build: variant.server.build,
          command: variant.name,
          threads: variant.threads,
          round,
          ...sample,
        })),
      },
    }
  },
}

async function measure(
  { signal, progress }: Context,
  server: Server,
  command: readonly string[],
  { connections, keys, rate, seconds }: IoThreadsOptions & { seconds: number },
): Promise<ThreadsRun> {
  const before = await server.cpu()
  const load = await generateLoad({
    target: server,
    mode: 'long',
    connections,
    end: { seconds },
    command,
    keys,
    ...(rate !== undefined && { rate }),
    signal,
    onProgress: (rate) => progress.update(`${figure(rate)}/s`),
  })
  const cpu = cpuBetween(before, await server.cpu())
  await emptyList(server)
  return {
    commandsPerSecond: load.completed / load.seconds,
    latency: load.latency,
    mainCpuMicros: (cpu.mainCpuSeconds * 1e6) / load.completed,
    cpuMicros: (cpu.cpuSeconds * 1e6) / load.completed,
    mainDemand: cpu.mainDemand,
    generatorDemand: load.demand,
    replyErrors: load.replyErrors,
    errors: load.errors,
  }
}

/** Outside the measured time, for it grows with every LPUSH. */
async function emptyList({ socket }: Server): Promise<void> {
  const client = new Redis(socket)
  try {
    await client.del(LIST)
  } finally {
    client.disconnect()
  }
}
