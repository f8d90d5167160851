import { BACKGROUND_CLIENTS, BACKGROUND_RATE } from '../../../drivers/redis/background-load.ts'
import { type Case, product } from '../../../rounds/shape.ts'
import type { Preset } from '../redis.ts'
import { sets } from '../settings.ts'
import { DELETIONS, deleteOnce, fillKey, LRANGE, loop, NOTHING, READ, types } from './measure.ts'
import { callWith, clients, commandsOfClients, connections, REFERENCE } from './node-clients.ts'
import { sectionsOf } from './report.ts'
import { benchmark, tests } from './tests.ts'

/** The CPU time of single commands, and the latency of other clients during them. */
export const commands: Preset = {
  name: 'redis commands',
  title: 'Redis: the cost of commands',
  summary: 'one client sends one command: usual ones, from Node, INFO and CLIENT LIST, big keys',
  about: `
Redis executes one command at a time, so all other clients wait during a slow one. One client sends a command in a
loop:
  usual           the default tests of redis-benchmark -c 1, as in listing 10 of the articles
  node-clients    clients of Node with one caller, as a share of that rate, with one connection or many
  info            INFO and CLIENT LIST, by number of idle connections; the build baseline iterates over all of them
  big-keys        LRANGE by number of elements; DEL, and UNLINK, which frees memory in a background thread

During all sets but the first two, ${BACKGROUND_CLIENTS} other clients send ${BACKGROUND_RATE} GETs per second. Their latency counts from the
scheduled time of a GET. With few cores, they also wait for CPU time: compare with the rows in which the one client
sends nothing. Execution times are from INFO commandstats.

Examples:
  npm run load -- redis commands --sets node-clients --rounds 5
  npm run load -- redis commands --sets info --idle 10,1000,9999 --builds baseline,stock
  npm run load -- redis commands --sets big-keys --lengths 100,1000 --elements 5000000`,
  duration: 1,
  quick: { rounds: 1, duration: 0.5, requests: 2_000, elements: 100_000 },
  settings: {
    builds: ['patched'],
    threads: [1],
    sets: [...sets],
    requests: 20_000,
    idle: [10, 9_999],
    lengths: [1, 10, 100, 1_000, 10_000, 100_000],
    elements: 1_000_000,
  },

  factors: [
    'set',
    'idle',
    'threads',
    'build',
    'key',
    { name: 'command', label: 'one client sends' },
    'elements',
    'client',
    'connection',
  ],
  subject: 'command',
  progress: ['mainCpuMicros', 'max'],
  baseline: ({ set, command }) => {
    if (set === 'usual') return { command: 'PING' }
    if (set === 'node-clients') return REFERENCE
    if (set === 'info') return { command: NOTHING }
    return command === 'UNLINK' ? { command: 'DEL' } : null
  },

  server: ({ sets, idle, lengths }) => ({
    busy: BACKGROUND_CLIENTS,
    idle: [...new Set([0, ...(sets.includes('info') ? idle : [])])],
    config: { 'lazyfree-lazy-user-del': 'no' },
    benchmark: sets.includes('usual') || sets.includes('node-clients'),
    unlimited: sets.includes('node-clients'),
    async fill(server, signal) {
      await fillKey(server, { key: READ, type: 'list', elements: Math.max(...lengths) }, signal)
    },
  }),

  cases({ sets, idle, lengths, elements }) {
    const all: Record<(typeof sets)[number], Case[]> = {
      usual: product({ command: Object.keys(tests) }),
      'node-clients': product({
        command: commandsOfClients,
        client: clients,
        connection: connections,
      }),
      info: product({ idle, command: [NOTHING, 'INFO', 'CLIENT LIST'] }),
      'big-keys': [
        { command: NOTHING },
        ...product({ key: ['list'], command: [LRANGE], elements: lengths }),
        ...product({ key: types, command: DELETIONS, elements: [elements] }),
      ],
    }
    return sets.flatMap((set) => all[set].map((one) => ({ set, idle: 0, ...one })))
  },

  async measure(one, { server }, { options, context: { signal } }) {
    const { duration: seconds, requests = 1 } = options
    const command = String(one.command)
    if (one.set === 'node-clients')
      return await callWith(server, one, { seconds, requests, signal })
    if (one.set === 'usual') return await benchmark(server, command, requests, signal)
    if (DELETIONS.includes(command)) return await deleteOnce(server, one, signal)
    const args = command === LRANGE ? [READ, '0', String(Number(one.elements) - 1)] : []
    return await loop(server, [...command.split(' '), ...args], { seconds, signal })
  },

  sections: sectionsOf,
}
