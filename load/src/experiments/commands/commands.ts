import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { BACKGROUND_CLIENTS, BACKGROUND_RATE } from '../../drivers/redis/background-load.ts'
import { removeNetworkLimits, requireConnections } from '../../drivers/redis/limits.ts'
import {
  addBuilds,
  type BuildsOptions,
  namesOption,
  numbersOption,
} from '../../drivers/redis/options.ts'
import { requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { fillKeys, redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { asCost, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import { KEYS, readMany, several, single, VALUE_BYTES } from './large-requests.ts'
import { DELETIONS, deleteOnce, fillKey, LRANGE, loop, NOTHING, READ, types } from './measure.ts'
import { callWith, clients, commandsOfClients, connections, REFERENCE } from './node-clients.ts'
import { sectionsOf } from './report.ts'
import { benchmark, tests } from './tests.ts'

const sets = ['usual', 'node-clients', 'info', 'big-keys', 'large-requests'] as const

interface CommandsOptions extends BuildsOptions {
  sets: (typeof sets)[number][]
  requests: number
  idle: number[]
  lengths: number[]
  values: number[]
  elements: number
}

/** The CPU time of single commands, and the latency of other clients during them. */
export const commands: Experiment<CommandsOptions, (one: Case) => RedisServer> = {
  name: 'commands',
  title: 'Redis: the cost of commands',
  summary: 'one client sends one command: usual ones, from Node, INFO and CLIENT LIST, big keys',
  about: `
Redis executes one command at a time, so all other clients wait during a slow one. One client sends a command in a
loop:
  usual      the default tests of redis-benchmark -c 1, as in listing 10 of the source articles. The rate is an
             upper bound for a client that waits for each reply.
  node-clients
             clients of Node with one caller, as a share of that rate: on one connection, or on a new one for each
             command. In the source articles, a Python client reaches 50-60 % and 25-30 %.
  info       INFO and CLIENT LIST, by number of idle connections. In the source articles, INFO took 80 % of a core
             with 9,999 idle clients, because it iterated over all of them. Its build baseline does so again.
  big-keys   LRANGE by number of elements; and DEL, which frees memory in the main thread, or UNLINK, which frees
             it in a background thread. Redis runs with lazyfree-lazy-user-del no, its default.
  large-requests
             many values of ${VALUE_BYTES} bytes in one request: a pipeline of GETs, MGET, a script, a transaction. Rates
             and CPU time are per value. System calls are counted without the other clients.

During all sets but usual and node-clients, ${BACKGROUND_CLIENTS} other clients send ${BACKGROUND_RATE} GETs per second. Their latency counts from
the scheduled time of a GET. With few cores, they also wait for CPU time: compare with the rows in which the one client
sends nothing. Execution times are from INFO commandstats; they exclude reading the command and writing the reply.

Examples:
  npm run load -- commands --sets node-clients --rounds 5
  npm run load -- commands --sets info --idle 10,1000,9999 --builds baseline,stock
  npm run load -- commands --sets big-keys --lengths 100,1000 --elements 5000000`,
  rounds: 3,
  duration: 1,
  quick: { rounds: 1, duration: 0.5, requests: 2_000, elements: 100_000 },
  configure(command) {
    addBuilds(command, ['patched'])
    command
      .addOption(namesOption('--sets <list>', sets))
      .option('--requests <n>', 'commands of a usual test', wholeNumber(1_000, 10_000_000), 20_000)
      .addOption(numbersOption('--idle <list>', 'info: idle connections', [0, 1e6], [10, 9_999]))
      .addOption(
        numbersOption(
          '--lengths <list>',
          'big-keys: elements of an LRANGE',
          [1, 1e6],
          [1, 10, 100, 1_000, 10_000, 100_000],
        ),
      )
      .addOption(
        numbersOption(
          '--values <list>',
          'large-requests: values per request',
          [1, 10_000],
          [100, 1_000, 10_000],
        ),
      )
      .option(
        '--elements <n>',
        'big-keys: elements of a deleted key',
        wholeNumber(1_000, 20_000_000),
        1_000_000,
      )
  },
  isolated: ({ builds }) => [...builds, 'tools'],

  factors: [
    { name: 'set' },
    { name: 'idle', label: 'idle connections' },
    { name: 'build' },
    { name: 'key' },
    { name: 'command', label: 'one client sends' },
    { name: 'elements' },
    { name: 'client' },
    { name: 'connection' },
  ],
  subject: 'command',
  metrics: [
    { name: 'perSecond', label: 'commands/s', ...asRate },
    { name: 'executionMicros', label: 'execution µs /command', ...asCost },
    { name: 'mainCpuShare', label: 'main thread CPU, of a core', format: 'percent' },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCost },
    { name: 'systemCalls', label: 'system calls /1,000 values', ...asCost },
    { name: 'backgroundCpuMicros', label: 'background CPU µs /command', ...asCost },
    { name: 'p50', label: 'GET p50 ms', ...asLatency },
    { name: 'p99', label: 'GET p99 ms', ...asLatency },
    { name: 'max', label: 'GET longest ms' },
  ],
  progress: ['mainCpuMicros', 'max'],
  baseline: ({ set, command }) => {
    if (set === 'usual') return { command: 'PING' }
    if (set === 'node-clients') return REFERENCE
    if (set === 'info') return { command: NOTHING }
    if (set === 'large-requests')
      return command === NOTHING ? null : { command: single, elements: 1 }
    return command === 'UNLINK' ? { command: 'DEL' } : null
  },

  async prepare(context, options) {
    await requireConnections(Math.max(...options.idle) + BACKGROUND_CLIENTS)
    const isBenchmarked = options.sets.some((set) => set === 'usual' || set === 'node-clients')
    if (isBenchmarked) await requireRedisBenchmark(context.signal)
    if (options.sets.includes('node-clients')) await removeNetworkLimits(BACKGROUND_CLIENTS)
    const idle = options.sets.includes('info') ? options.idle : []
    const servers = product({ idle: [...new Set([0, ...idle])], build: options.builds })
    return await redisForEach(context, servers, async (one) => {
      const config = { 'lazyfree-lazy-user-del': 'no' }
      const server = await startFilledRedis(context, { ...one, busy: BACKGROUND_CLIENTS, config })
      const elements = Math.max(...options.lengths)
      if (one.idle === 0) {
        await fillKey(server, { key: READ, type: 'list', elements }, context.signal)
        await fillKeys(server.socket, KEYS, VALUE_BYTES)
      }
      return server
    })
  },

  cases: (_, { sets, builds: build, idle, lengths, values, elements }) => {
    const big = { set: ['big-keys'], idle: [0], build }
    const large = { set: ['large-requests'], idle: [0], build }
    const all: Record<(typeof sets)[number], Case[]> = {
      usual: product({ set: ['usual'], idle: [0], build, command: Object.keys(tests) }),
      'node-clients': product({
        set: ['node-clients'],
        idle: [0],
        build,
        command: commandsOfClients,
        client: clients,
        connection: connections,
      }),
      info: product({ set: ['info'], idle, build, command: [NOTHING, 'INFO', 'CLIENT LIST'] }),
      'big-keys': [
        ...product({ ...big, command: [NOTHING] }),
        ...product({ ...big, key: ['list'], command: [LRANGE], elements: lengths }),
        ...product({ ...big, key: types, command: DELETIONS, elements: [elements] }),
      ],
      'large-requests': [
        ...product({ ...large, command: [NOTHING] }),
        ...product({ ...large, elements: [1], command: [single] }),
        ...product({ ...large, elements: values, command: several }),
      ],
    }
    return sets.flatMap((set) => all[set])
  },

  async measure(one, serverOf, { options: { duration: seconds, requests }, context: { signal } }) {
    const server = serverOf(one)
    const command = String(one.command)
    if (one.set === 'node-clients')
      return await callWith(server, one, { seconds, requests, signal })
    if (one.set === 'usual') return await benchmark(server, command, requests, signal)
    if (DELETIONS.includes(command)) return await deleteOnce(server, one, signal)
    if (one.set === 'large-requests') return await readMany(server, one, { seconds, signal })
    const args = command === LRANGE ? [READ, '0', String(Number(one.elements) - 1)] : []
    return await loop(server, { command: [...command.split(' '), ...args] }, { seconds, signal })
  },

  sections: sectionsOf,
}
