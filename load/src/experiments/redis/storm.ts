import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { errors, range, ratio } from '../../reporting/columns.ts'
import { product } from '../../rounds/shape.ts'
import type { Preset } from './redis.ts'

const NAIVE = 'naive'
const POOLS = 'pools'

/** Clients that share a connection of a pool: processes with 100 clients each have a pool of ten. */
const SHARING = 10
/** Of the server, before the clients connect again. */
const PAUSE_MS = 500

/** How long a Redis takes to serve its clients again after a pause. */
export const storm: Preset = {
  name: 'redis storm',
  title: 'Redis: clients reconnect at once',
  summary: 'how long Redis takes to serve thousands of clients that reconnect at once',
  about: `
Redis is paused for ${PAUSE_MS / 1_000} s (SIGSTOP), and all clients connect meanwhile. Then each client reads a value once a
second:
  naive  over a new connection for each command
  pools  over pools of ten connections that stay open, one pool for 100 clients
The latency of a command counts from when it is due, with the time to connect. The result is the time until the p99 of
the commands of a tenth of a second stays below 5 ms. Refused connections are those beyond maxclients; a SYN is
repeated, after 1 s, when the backlog was full.

Examples:
  npm run load -- redis storm --connections 2000 --threads 1,2
  npm run load -- redis storm --maxclients 5000`,
  duration: 5,
  quick: { rounds: 1, duration: 3, connections: 1_000 },
  settings: {
    builds: ['stock', 'patched'],
    threads: [1, 2],
    connections: 5_000,
    maxclients: undefined,
  },

  factors: ['load', 'threads', 'build'],
  subject: 'build',
  progress: ['recoveredAfter', 'p99', 'cpuMicros'],
  baseline: () => ({ build: 'stock' }),

  server: ({ connections, maxclients }) => ({
    busy: connections,
    config: maxclients === undefined ? {} : { maxclients: String(maxclients) },
  }),
  cases: () => product({ load: [NAIVE, POOLS] }),

  async measure({ load }, { server, target }, { options, context: { signal } }) {
    const { connections, duration } = options
    const isNaive = load === NAIVE
    const admin = new Redis(server.socket)
    const read = async () => {
      const refused = parseInfo(await admin.info('stats')).get('rejected_connections')
      return { refused: Number(refused), repeated: await repeatedSyns() }
    }
    try {
      const before = await read()
      process.kill(server.pid, 'SIGSTOP')
      const goOn = delay(PAUSE_MS).finally(() => process.kill(server.pid, 'SIGCONT'))
      const { result, cpu } = await cpuDuring(server, () =>
        Promise.all([
          generateLoad({
            target,
            mode: isNaive ? 'spread' : 'long',
            connections: isNaive ? connections : Math.ceil(connections / SHARING),
            rate: connections,
            command: ['GET', '{key}'],
            end: { seconds: duration + PAUSE_MS / 1_000 },
            signal,
          }),
          goOn,
        ]),
      )
      const [run] = result
      const after = await read()
      return {
        values: {
          ...run.latency,
          ...microsPer(cpu, run.completed),
          recoveredAfter: Math.max(0, run.slowUntil - PAUSE_MS / 1_000),
          refused: after.refused - before.refused,
          repeated: after.repeated - before.repeated,
        },
        errors: run.errors,
      }
    } finally {
      admin.disconnect()
    }
  },

  sections: (_, { options }) => [
    {
      title: 'After a pause',
      caption: `${options.connections} clients connect at once, then each sends a command per second`,
      columns: [
        range('recoveredAfter'),
        ratio('recoveredAfter', '× stock'),
        'refused',
        'repeated',
        'p99',
        'max',
        range('mainCpuMicros'),
        range('cpuMicros'),
        errors,
      ],
    },
  ],
}

/** Repeated SYNs in this network namespace, of all programs in it. */
async function repeatedSyns(): Promise<number> {
  const text = await readFile('/proc/self/net/netstat', 'utf8')
  const [names = [], values = []] = text
    .split('\n')
    .filter((line) => line.startsWith('TcpExt:'))
    .map((line) => line.split(' '))
  return Number(values[names.indexOf('TCPSynRetrans')])
}
