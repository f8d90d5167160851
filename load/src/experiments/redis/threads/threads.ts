import { availableParallelism } from 'node:os'
import { parseInfo } from '@onetrip/session-store'
import { Problem } from '@onetrip/stack/problem.ts'
import { Redis } from 'ioredis'
import { limitedByGenerator, measureLoad } from '../../../drivers/redis/cost.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import { fillKeys } from '../../../drivers/redis/servers.ts'
import { product } from '../../../rounds/shape.ts'
import type { Preset } from '../redis.ts'
import { commandNames } from '../settings.ts'
import {
  bytesInFlight,
  type CommandName,
  commandOf,
  commandTexts,
  keysOf,
  LIST,
  sizeText,
} from './commands.ts'
import { sectionsOf } from './report.ts'

const cores = availableParallelism()

const MAX_BYTES_IN_FLIGHT = 2 ** 30

/** Rate and CPU time with and without Redis's I/O threads. */
export const threads: Preset = {
  name: 'redis threads',
  title: 'Redis: I/O threads',
  summary: 'GET, SET, MGET of 10 and LPUSH with I/O threads, by size of the values and pipeline',
  about: `
The articles went from 87,500 to 215,800 GET/s with four threads. The setting io-threads includes the main
thread; 1 means off.

Commands: GET, SET, MGET of 10 keys, LPUSH (every 64th command is an LTRIM that keeps the list short), and MIX:
SET and GET in turn, as memtier sends them. The generator builds its requests before the run and does not read
replies of 4 kB or more: it counts their bytes, and Redis's counters of errors and missing keys must be 0.

Rates rise only if there are enough cores for Redis's threads and the load. The CPU time of each thread per command
gives a ceiling with more cores, which is labelled as extrapolated. Latencies can be compared at a fixed --rate.

Examples:
  npm run load -- redis threads --threads 1,2,4,8 --bytes 100 --pipeline 1 --connections 400   (as the articles)
  npm run load -- redis threads --builds stock,patched --commands GET,SET --bytes 64 --rate 20000`,
  duration: 0.4,
  quick: { rounds: 1, duration: 0.2, bytes: [64, 16_384] },
  settings: {
    builds: ['patched'],
    threads: cores < 4 ? [1, 3] : [1, 4, 8],
    commands: [...commandNames],
    bytes: [64, 1_024, 16_384, 65_536],
    pipeline: [1, 8],
    connections: 50,
    rate: undefined,
  },

  factors: [
    { name: 'command', text: (name) => commandTexts[name] ?? String(name) },
    { name: 'bytes', label: 'value', text: sizeText },
    'pipeline',
    'build',
    'threads',
  ],
  subject: 'threads',
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

  server({ connections, commands, bytes, pipeline }) {
    for (const one of product({ name: commands, size: bytes, commands: pipeline })) {
      const { name, size } = one
      if (bytesInFlight(name, size, connections * one.commands) <= MAX_BYTES_IN_FLIGHT) continue
      const what = `${name} of ${sizeText(size)}, pipeline ${one.commands}`
      throw new Problem(
        `${what}: ${connections} connections could have more than 1 GB in flight. Reduce --connections, --bytes or --pipeline.`,
      )
    }
    return { busy: connections }
  },

  cases: ({ commands: command, bytes, pipeline }) => product({ command, bytes, pipeline }),

  async measure(one, { server, target }, { options, context: { signal } }) {
    const { connections, rate = 0, duration: seconds } = options
    const [bytes, pipeline] = [Number(one.bytes), Number(one.pipeline)]
    const keys = keysOf(bytes)
    await fillKeys(server.socket, keys, bytes)
    const command = commandOf(one.command as CommandName, bytes)
    const load = { target, mode: 'discard', connections, keys, pipeline, rate, command } as const
    const { result, failures, userShare, commandBytes } = await countInRedis(server, () =>
      measureLoad(server, { ...load, end: { seconds }, signal }),
    )
    const { perSecond, cpuMicros } = result.values
    return {
      values: {
        ...result.values,
        userMicros: cpuMicros * userShare,
        kernelMicros: cpuMicros * (1 - userShare),
        networkPerSecond: (perSecond * commandBytes) / 1e6,
      },
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
