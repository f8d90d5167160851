import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { cpuDuring } from '../../drivers/redis/cost.ts'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import { addBuilds, type BuildsOptions, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { asCpu, asLatency, asRate, type Case, product } from '../../experiment/shape.ts'
import { bars } from '../../reporting/charts.ts'
import { documented, range, tableOf } from '../../reporting/columns.ts'

interface InfoOptions extends BuildsOptions {
  idle: number[]
  rate: number
}

/** Clients that share the rate of GETs: each of them waits at most once for a slow answer. */
const OTHERS = 50

const NOTHING = 'nothing'
/** What one client sends without pause. */
const commands = [NOTHING, 'INFO', 'CLIENT LIST']

/** Figures of the documents, each with the row that it stands beside. */
const documents = (idle: number) => ({
  ...{ unit: '% of a core', metric: 'mainCpuShare', case: { command: 'INFO', idle } },
  source: '张鹏义, Tencent Cloud: cases of high CPU and memory; Redis 4.0.10',
})

/** What a client that asks for statistics without pause costs the server, and all other clients. */
export const info: Experiment<InfoOptions, (one: Case) => RedisServer> = {
  name: 'info',
  title: 'Redis: INFO beside many idle connections',
  summary: 'INFO and CLIENT LIST without pause, beside thousands of idle connections',
  group: 'Redis',
  about: `
In the documents one client that sent INFO without pause took 20 % of a core beside no others, and 80 %
beside 9,999 idle ones, because INFO walked all clients. Redis 5 to 8 do not; CLIENT LIST has to.

Meanwhile ${OTHERS} other clients send GETs at a fixed rate. The clock of each GET starts when it is due. With
fewer than three free cores they also wait for a core: compare with the rows where the one client sends
nothing.

Examples:
  npm run load -- info --quick
  npm run load -- info --idle 10,1000,9999 --builds patched,stock`,
  rounds: 3,
  duration: 2,
  quick: { rounds: 1, duration: 1 },
  seconds: { quick: null, usual: 45, full: 45 },
  configure(command) {
    addBuilds(command, ['patched'])
    const idle = { min: 0, max: 1_000_000, defaults: [10, 9_999] }
    command
      .addOption(numbersOption('--idle <list>', 'idle connections', idle))
      .option('--rate <n>', 'GETs per second in all', wholeNumber(1, 100_000), 1_000)
  },
  isolated: ({ builds }) => builds,

  factors: [
    { name: 'idle', label: 'beside', text: (value) => `${value.toLocaleString('en-US')} idle` },
    { name: 'build', label: 'build' },
    { name: 'command', label: 'one client sends' },
  ],
  subject: 'command',
  metrics: [
    { name: 'mainCpuShare', label: 'main thread CPU, of a core', format: 'percent' },
    { name: 'answersPerSecond', label: 'answers/s', ...asRate },
    { name: 'mainCpuMillis', label: 'main thread CPU ms /answer', ...asCpu, least: 0.01 },
    { name: 'p50', label: 'GET p50 ms', ...asLatency },
    { name: 'p99', label: 'GET p99 ms', ...asLatency },
    { name: 'max', label: 'GET longest ms' },
  ],
  progress: ['mainCpuShare', 'p50', 'p99'],
  loadOptions: ['rate'],
  baseline: () => ({ command: NOTHING }),

  async prepare(context, { builds, idle }) {
    await requireConnections(Math.max(...idle) + OTHERS)
    return await redisForEach(context, product({ idle, build: builds }), (one) =>
      startFilledRedis(context, { ...one, busy: OTHERS }),
    )
  },

  cases: (_, { builds, idle }) => product({ idle, build: builds, command: commands }),

  async measure(one, serverOf, { options: { rate, duration }, context: { signal } }) {
    const target = serverOf(one)
    const common = { target, mode: 'long', end: { seconds: duration }, signal } as const
    const command = String(one.command).split(' ')
    const { result, cpu } = await cpuDuring(target, () =>
      Promise.all([
        one.command === NOTHING ? null : generateLoad({ ...common, connections: 1, command }),
        generateLoad({ ...common, connections: OTHERS, command: ['GET', '{key}'], rate }),
      ]),
    )
    const [asked, others] = result
    const { p50, p99, max } = others.latency
    return {
      values: {
        mainCpuShare: cpu.mainCpuSeconds / cpu.seconds,
        answersPerSecond: asked && asked.completed / asked.seconds,
        mainCpuMillis: asked && (cpu.mainCpuSeconds * 1_000) / asked.completed,
        ...{ p50, p99, max },
      },
      errors: others.errors,
    }
  },

  sections: (rows, { options }) => [
    {
      title: 'What one client costs the others',
      charts: rows
        .by('idle')
        .flatMap(({ rows: beside }) => beside.by('build'))
        .map(({ value, rows: own }) => {
          const idle = own.all[0]?.text('idle')
          return bars(own, 'p99', `p99 of the others' GETs, beside ${idle} connections, ${value}`)
        }),
      tables: [
        tableOf(rows, {
          caption: `One client sends a command without pause; ${OTHERS} others send ${figure(Number(options.rate))} GET/s meanwhile`,
          columns: [
            range('mainCpuShare', rows),
            documented('mainCpuShare', 'documents %'),
            range('answersPerSecond', rows),
            'mainCpuMillis',
            range('p50', rows),
            range('p99', rows),
            'max',
          ],
        }),
      ],
    },
  ],
  /** How the cost of an answer grows from the fewest to the most idle connections. */
  claims: (rows) =>
    rows.by('build').flatMap(({ value: build, rows: own }) =>
      own.by('command').flatMap(({ value: command, rows: { all } }) => {
        const [few, ...more] = all.toSorted((a, b) => Number(a.case.idle) - Number(b.case.idle))
        const many = more.at(-1)
        const times = Number(many?.median('mainCpuMillis')) / Number(few?.median('mainCpuMillis'))
        if (!Number.isFinite(times)) return []
        return [
          `${command} (${build}): an answer costs ${figure(times)} times as much beside ${many?.text('idle')} connections as beside ${few?.case.idle}.`,
        ]
      }),
    ),
  published: [
    { what: 'INFO, no idle connections', value: 20, ...documents(0) },
    { what: 'INFO, 9,999 idle connections', value: 80, ...documents(9_999) },
  ],
}
