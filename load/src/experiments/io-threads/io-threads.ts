import { availableParallelism } from 'node:os'
import { parseInfo } from '@onetrip/session-store'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Redis } from 'ioredis'
import { limitedByGenerator, measureLoad } from '../../drivers/redis/cost.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import {
  addBuilds,
  type BuildsOptions,
  namesOption,
  numbersOption,
} from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { fillKeys, redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { asCost, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import {
  bytesInFlight,
  type CommandName,
  commandNames,
  commandOf,
  commandTexts,
  keysOf,
  LIST,
  sizeText,
} from './commands.ts'
import { sectionsOf } from './report.ts'

interface IoThreadsOptions extends BuildsOptions {
  threads: number[]
  commands: CommandName[]
  /** Sizes of the values. */
  bytes: number[]
  /** Commands per pipeline. */
  pipeline: number[]
  connections: number
  rate?: number
}

const cores = availableParallelism()

const MAX_BYTES_IN_FLIGHT = 2 ** 30

/** Rate and CPU time with and without Redis's I/O threads. */
export const ioThreads: Experiment<IoThreadsOptions, (one: Case) => RedisServer> = {
  name: 'io-threads',
  title: 'Redis: I/O threads',
  summary: 'GET, SET, MGET of 10 and LPUSH with I/O threads, by size of the values and pipeline',
  about: `
In the source articles, Redis 6.2 on 24 cores went from 87,500 to 215,800 GET/s with four threads, and not higher
with eight (208,700 on average over all commands), because the main thread, which executes all commands, became
the bottleneck. The setting io-threads includes the main thread; 1 means off.

Commands: GET, SET, MGET of 10 keys, LPUSH (every 64th command is an LTRIM that keeps the list short), and MIX:
SET and GET in turn, as memtier sends them. Connections use TCP. The generator builds its requests before the run
and does not read replies of 4 kB or more: it counts their bytes, and Redis's counters of errors and missing keys
must be 0.

Rates rise only if there are enough cores for Redis's threads and the load. The CPU time of each thread per command
predicts the rate with more cores; this extrapolation is labelled in the report. With a fixed --rate, latencies can
be compared, but each command needs more CPU time of the main thread.

Examples:
  npm run load -- io-threads --threads 1,2,3,4,8
  npm run load -- io-threads --threads 1,2,4,8 --bytes 100 --pipeline 1 --connections 400   (as the articles)
  npm run load -- io-threads --commands GET --bytes 100,4096,1000000 --pipeline 1 --connections 200
  npm run load -- io-threads --builds stock,patched --commands GET,SET --bytes 64 --rate 20000`,
  rounds: 3,
  duration: 0.4,
  quick: { rounds: 1, duration: 0.2, bytes: [64, 16_384] },
  configure(command) {
    addBuilds(command, ['patched'])
    const threads = cores < 4 ? [1, 3] : [1, 4, 8]
    const sizes = [64, 1_024, 16_384, 65_536]
    const perPipeline = 'commands per pipeline'
    const total = 'commands/s of all connections (default: no limit)'
    command
      .addOption(numbersOption('--threads <list>', 'settings of io-threads', [1, 128], threads))
      .addOption(namesOption('--commands <list>', commandNames))
      .addOption(numbersOption('--bytes <list>', 'sizes of the values', [1, 2 ** 24], sizes))
      .addOption(numbersOption('--pipeline <list>', perPipeline, [1, 1_000], [1, 8]))
      .option('--connections <n>', 'long-lived connections', wholeNumber(1, 10_000), 50)
      .option('--rate <n>', total, wholeNumber(1, 1_000_000))
  },
  isolated: ({ builds }) => builds,

  factors: [
    { name: 'command', text: (name) => commandTexts[name] ?? String(name) },
    { name: 'bytes', label: 'value', text: sizeText },
    { name: 'pipeline', label: 'pipeline' },
    { name: 'build' },
    { name: 'threads', label: 'I/O threads' },
  ],
  subject: 'threads',
  metrics: [
    { name: 'perSecond', label: 'commands/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCost },
    { name: 'cpuMicros', label: 'all threads CPU µs /command', ...asCost },
    { name: 'userMicros', label: 'user CPU µs /command', ...asCost },
    { name: 'kernelMicros', label: 'kernel CPU µs /command', ...asCost },
    { name: 'networkPerSecond', label: 'network MB/s' },
    { name: 'below1', label: 'below 1 ms', format: 'percent' },
    { name: 'above2', label: 'over 2 ms', format: 'percent' },
    { name: 'p99', label: 'p99 ms', ...asLatency },
  ],
  progress: ['perSecond', 'mainCpuMicros', 'below1'],
  doubts: {
    generator: {
      ...limitedByGenerator,
      text: "The generator was busy or waited for a core all the time, Redis's main thread was not. With one more core, the rate would be higher.",
      keepsRatios: true,
    },
    crowded: {
      mark: '!',
      text: 'Redis has more threads than this machine has cores, and the load needs CPU time, too. Competition for cores reduces the rate.',
      keepsRatios: true,
    },
  },
  baseline: (_, cases) => ({ threads: Math.min(...cases.map(({ threads }) => Number(threads))) }),

  async prepare(context, { builds, threads, connections, commands, bytes, pipeline }) {
    await requireConnections(connections)
    for (const one of product({ name: commands, size: bytes, commands: pipeline })) {
      const { name, size } = one
      if (bytesInFlight(name, size, connections * one.commands) <= MAX_BYTES_IN_FLIGHT) continue
      const what = `${name} of ${sizeText(size)}, pipeline ${one.commands}`
      throw new Problem(
        `${what}: ${connections} connections could have more than 1 GB in flight. Reduce --connections, --bytes or --pipeline.`,
      )
    }
    return await redisForEach(context, product({ build: builds, threads }), (one) => {
      const config = { 'io-threads': String(one.threads) }
      return startFilledRedis(context, { build: one.build, busy: connections, config })
    })
  },

  cases: (_, { commands: command, bytes, pipeline, builds: build, threads }) =>
    product<Case>({ command, bytes, pipeline, build, threads }),

  async measure(one, serverOf, { options, context: { signal } }) {
    const server = serverOf(one)
    const { connections, rate = 0, duration: seconds } = options
    const [bytes, pipeline] = [Number(one.bytes), Number(one.pipeline)]
    const keys = keysOf(bytes)
    await fillKeys(server.socket, keys, bytes)
    const { result, failures, userShare, commandBytes } = await countInRedis(server, () =>
      measureLoad(server, {
        target: { port: server.port },
        mode: 'discard',
        connections,
        keys,
        pipeline,
        rate,
        command: commandOf(one.command as CommandName, bytes),
        end: { seconds },
        signal,
      }),
    )
    const { perSecond, cpuMicros } = result.values
    const use = {
      userMicros: cpuMicros * userShare,
      kernelMicros: cpuMicros * (1 - userShare),
      networkPerSecond: (perSecond * commandBytes) / 1e6,
    }
    return {
      ...result,
      values: { ...result.values, ...use },
      errors: { ...result.errors, ...failures },
      doubts: Number(one.threads) > cores ? [...result.doubts, 'crowded'] : result.doubts,
    }
  },

  sections: sectionsOf,
}

/**
 * Deletes the list, runs `work`, and reads Redis's counters. `failures` has its error replies and missing keys, also in
 * replies that the generator did not read. `userShare` is the share of Redis's CPU time in user mode, `commandBytes` the
 * bytes received and sent for a command.
 */
export async function countInRedis<Result>(
  { socket }: Pick<RedisServer, 'socket'>,
  work: () => Promise<Result>,
) {
  const client = new Redis(socket)
  const read = async () => {
    const info = parseInfo(await client.info('cpu', 'stats'))
    return (name: string) => Number(info.get(name))
  }
  try {
    await client.unlink(LIST)
    await client.config('RESETSTAT')
    const before = await read()
    const result = await work()
    const after = await read()
    const failures = {
      'error reply': after('total_error_replies'),
      'key not found': after('keyspace_misses'),
    }
    const counted = Object.entries(failures).filter(([, count]) => count > 0)
    const grown = (name: string) => after(name) - before(name)
    const [user, kernel] = [grown('used_cpu_user'), grown('used_cpu_sys')] as const
    const bytes = after('total_net_input_bytes') + after('total_net_output_bytes')
    return {
      result,
      failures: Object.fromEntries(counted),
      userShare: user / (user + kernel),
      commandBytes: bytes / after('total_commands_processed'),
    }
  } finally {
    client.disconnect()
  }
}
