import { setTimeout as delay } from 'node:timers/promises'
import {
  BACKGROUND_CLIENTS,
  BACKGROUND_RATE,
  withBackgroundLoad,
} from '../../drivers/redis/background-load.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import { addBuilds, type BuildsOptions, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { asCpu, asLatency, type Case, product } from '../../experiment/shape.ts'
import { fromArticles, range, sectionOf } from '../../reporting/columns.ts'

const NOTHING = 'nothing'
/** The commands that one client sends in a loop. */
const commands = [NOTHING, 'INFO', 'CLIENT LIST']

const articles = { baseline: { INFO: { 0: 20, 9999: 80 } } }

/** The effect of a client that sends INFO or CLIENT LIST in a loop on the server and on other clients. */
export const info: Experiment<BuildsOptions & { idle: number[] }, (one: Case) => RedisServer> = {
  name: 'info',
  title: 'Redis: INFO beside many idle connections',
  summary: 'INFO and CLIENT LIST in a loop, with thousands of idle connections',
  group: 'Redis',
  about: `
In the source articles, a client that sent INFO in a loop took 20 % of a core without other clients, and 80 %
with 9,999 idle ones, because INFO iterated over all clients. The build "baseline" does so again; Redis 8 does
not. CLIENT LIST always iterates over all clients.

During this, ${BACKGROUND_CLIENTS} other clients send ${BACKGROUND_RATE} GETs per second. Their latency is measured from when a GET is due.
With few cores, they also wait for CPU time: compare with the rows in which the one client sends nothing.

Examples:
  npm run load -- info --idle 10,1000,9999 --builds baseline,stock`,
  rounds: 3,
  duration: 2,
  quick: { rounds: 1, duration: 1 },
  configure(command) {
    addBuilds(command, ['patched'])
    const range = [0, 1_000_000] as const
    command.addOption(
      numbersOption('--idle <list>', 'numbers of idle connections', range, [10, 9_999]),
    )
  },
  isolated: ({ builds }) => builds,

  factors: [
    { name: 'idle', label: 'beside', text: (value) => `${value.toLocaleString('en-US')} idle` },
    { name: 'build' },
    { name: 'command', label: 'one client sends' },
  ],
  subject: 'command',
  metrics: [
    { name: 'mainCpuShare', label: 'main thread CPU, of a core', format: 'percent' },
    { name: 'mainCpuMicros', label: 'main thread CPU µs /answer', ...asCpu },
    { name: 'p50', label: 'GET p50 ms', ...asLatency },
    { name: 'p99', label: 'GET p99 ms', ...asLatency },
    { name: 'max', label: 'GET longest ms' },
  ],
  progress: ['mainCpuShare', 'p50', 'p99'],
  baseline: () => ({ command: NOTHING }),

  async prepare(context, { builds, idle }) {
    await requireConnections(Math.max(...idle) + BACKGROUND_CLIENTS)
    return await redisForEach(context, product({ idle, build: builds }), (one) =>
      startFilledRedis(context, { ...one, busy: BACKGROUND_CLIENTS }),
    )
  },

  cases: (_, { builds, idle }) => product({ idle, build: builds, command: commands }),

  async measure(one, serverOf, { options: { duration }, context: { signal } }) {
    const target = serverOf(one)
    const ask = async () => {
      if (one.command === NOTHING) return await delay(duration * 1_000, null, { signal })
      const command = String(one.command).split(' ')
      const end = { seconds: duration }
      return await generateLoad({ target, mode: 'long', connections: 1, command, end, signal })
    }
    const { result, background } = await withBackgroundLoad({ target, signal }, () =>
      cpuDuring(target, ask),
    )
    const { result: asked, cpu } = result
    const { latency, errors } = background
    const mainCpuShare = cpu.mainCpuSeconds / cpu.seconds
    const costs = asked && microsPer(cpu, asked.completed)
    return { values: { mainCpuShare, ...costs, ...latency }, errors }
  },

  sections: (rows) => [
    sectionOf(rows, {
      title: 'Effect of one client on the others',
      paragraphs: ['The source articles: 张鹏义, Tencent Cloud; Redis 4.0.10.'],
      caption: `One client sends a command in a loop, ${BACKGROUND_CLIENTS} others send ${figure(BACKGROUND_RATE)} GET/s`,
      columns: [
        range('mainCpuShare', rows),
        fromArticles('articles %', articles, 'build', 'command', 'idle'),
        range('mainCpuMicros', rows),
        ...[range('p50', rows), range('p99', rows), 'max'],
      ],
    }),
  ],
  /** The CPU time of a reply with the most idle connections, relative to the fewest. */
  claims: (rows) =>
    rows.by('build').flatMap(({ value: build, rows: own }) =>
      own.by('command').map(({ value: command, rows: { all } }) => {
        const [few, many] = [all[0], all.at(-1)]
        const times = many?.ratio('mainCpuMicros', few)
        return (
          times &&
          `${command} (${build}): a reply takes ${figure(times.mean)} times as much CPU time with ${many?.text('idle')} connections as with ${few?.case.idle}.`
        )
      }),
    ),
}
