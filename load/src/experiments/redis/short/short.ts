import { Problem } from '@onetrip/stack/problem.ts'
import { sum } from 'simple-statistics'
import { limitedByGenerator, measureLoad } from '../../../drivers/redis/cost.ts'
import { generateLoad } from '../../../drivers/redis/generator/load.ts'
import { systemCallsPerReply } from '../../../drivers/redis/system-calls.ts'
import { product } from '../../../rounds/shape.ts'
import type { Preset } from '../redis.ts'
import { LIGHT_CLIENTS, LIGHT_CONFIG, lightCases, runLight } from './light.ts'
import { BESIDE, LONG, SHORT, sectionsOf } from './report.ts'
import { isArticleShape, runShape, shapeOf, tools } from './shapes.ts'

/** The cost of a new connection for each command, by build of Redis. */
export const short: Preset = {
  name: 'redis short',
  title: 'Redis: short connections',
  summary: 'CPU time of short connections, with idle and long connections',
  about: `
Until 4.0.11, Redis searched the list of all clients whenever it closed a connection. The articles removed
this search. The build "baseline" has it again, "stock" is Redis 8, "patched" has our patches. The search is
expensive if many clients stay connected, hence the idle connections.

Clients connect from 200 addresses, because a closed connection holds its port for a minute. Redis and the clients
run in their own network namespace, if the system allows it.
System calls are counted in a separate run (strace), with the first number of idle connections.

--shape runs other loads instead. The first is redis-benchmark as in the articles, and our generator with the
same load; redis-benchmark closes its oldest connection first, which the search finds at once.
  get-8000         redis-benchmark -k 0 -t get -n 100000 -c 8000
  rates            50 to 5,000 connections per second, of 1 client, or of 10 or 50 that connect at the same moment
  burst            10 clients connect at the same moment, while another one runs commands of 10 ms
  half-close       a client shuts down its sending side; time until it sees the end of the connection

Examples:
  npm run load -- redis short --idle 9950 --maxclients 10000 --connections 25 --long 0
  npm run load -- redis short --shape rates,burst,half-close --builds stock,patched --duration 2`,
  duration: 1,
  quick: { rounds: 1, duration: 0.5, idle: [0, 10_000], transports: ['tcp'] },
  settings: {
    builds: ['baseline', 'stock', 'patched'],
    threads: [1],
    idle: [0, 1_000, 10_000],
    transports: ['tcp', 'unix'],
    connections: 50,
    long: 20,
    maxclients: undefined,
    shape: undefined,
    requests: undefined,
  },

  factors: ['load', 'tool', 'transport', 'idle', 'clients', 'rate', 'threads', 'build'],
  subject: 'build',
  progress: ['perSecond', 'mainCpuMicros'],
  doubts: {
    generator: limitedByGenerator,
    rested: {
      mark: '‡',
      text: "Redis's main thread was idle most of the time. The rate is limited by the tool, by its search for a free port, or by repeated SYNs because Redis's backlog was full. Compare CPU times.",
    },
  },
  baseline: () => ({ build: 'stock' }),

  server({ shape, requests, connections, long, maxclients }) {
    const articles = (shape ?? []).filter(isArticleShape)
    if (requests && articles.length === 0) {
      throw new Problem('--requests has no effect without --shape get-8000.')
    }
    const room = maxclients === undefined ? {} : { maxclients: String(maxclients) }
    if (!shape) return { busy: connections + long, config: room }
    const busy = Math.max(LIGHT_CLIENTS, ...articles.map((name) => shapeOf(name).clients))
    const config = { ...room, 'tcp-backlog': String(busy), ...LIGHT_CONFIG }
    const isBenchmark = articles.length > 0
    return { busy, idle: [0], config, benchmark: isBenchmark, unlimited: isBenchmark }
  },

  cases({ idle, transports: transport, long, shape }) {
    if (shape) {
      return shape.flatMap((load) =>
        isArticleShape(load) ? product({ load: [load], tool: tools }) : lightCases(load),
      )
    }
    const [first] = product({ transport, idle })
    const others = long > 0 ? [LONG, BESIDE] : []
    return [
      ...product({ load: [SHORT], transport, idle }),
      ...others.map((load) => ({ ...first, load })),
    ]
  },

  async measure(one, { server, target }, { options, context: { signal } }) {
    const { load, idle } = one
    const { connections, idle: all } = options
    const end = { seconds: options.duration }
    const short = {
      target,
      mode: 'short',
      connections,
      command: ['GET', '{key}'],
      end,
      signal,
    } as const
    if (isArticleShape(load)) return await runShape(server, one, options.requests, short)
    if (options.shape)
      return await runLight(server, one, { ...short, target: { port: server.port } })
    if (load === SHORT) {
      const run = await measureLoad(server, short)
      const calls = idle === all[0] ? await systemCallsPerReply(server.pid, short) : null
      if (!calls) return run
      const values = { ...run.values, systemCalls: sum(Object.values(calls)) }
      return { ...run, values, details: { systemCalls: calls } }
    }
    const long = { ...short, mode: 'long', connections: options.long } as const
    if (load === LONG) return await measureLoad(server, long)
    const [run] = await Promise.all([measureLoad(server, long), generateLoad(short)])
    // The CPU time of two concurrent loads cannot be separated.
    return { ...run, values: { ...run.values, mainCpuMicros: null, cpuMicros: null } }
  },

  sections: sectionsOf,
}
