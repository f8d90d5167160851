import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { generateLoad, holdConnections } from '../../drivers/redis/generator/load.ts'
import { fillKeys } from '../../drivers/redis/keys.ts'
import { requireConnections } from '../../drivers/redis/limits.ts'
import { addBuilds, type BuildsOptions, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { bars } from '../../reporting/charts.ts'
import { documented, range, tableOf } from '../../reporting/columns.ts'

interface InfoOptions extends BuildsOptions {
  idle: number[]
  rate: number
}

/** Clients that share the rate of GETs: each of them waits at most once for a slow answer. */
const VICTIMS = 50

const NOTHING = 'nothing'
/** What one client sends without pause. */
const commands = [NOTHING, 'INFO', 'CLIENT LIST']

const source = '张鹏义, Tencent Cloud: cases of high CPU and memory; Redis 4.0.10'

const latency = { kind: 'pace', better: 'lower', least: 0.01 } as const

/** The row that a figure of the documents stands beside. */
const of = (idle: number) => ({ case: { command: 'INFO', idle }, metric: 'mainCpuShare' })

/** What a client that asks for statistics without pause costs the server, and all other clients. */
export const info: Experiment<InfoOptions, Map<string, RedisServer>> = {
  name: 'info',
  title: 'Redis: INFO beside many idle connections',
  summary: 'INFO and CLIENT LIST without pause, beside thousands of idle connections',
  group: 'Redis',
  about: `
In the documents one client that sent INFO without pause took 20 % of a core beside no others, and 80 %
beside 9,999 idle ones, because INFO walked all clients for two of its figures. Redis 5 to 8 keep
those figures up to date instead; CLIENT LIST still walks, as it has to.

What matters is what other clients notice: ${VICTIMS} of them send GETs at a fixed rate, and the clock of each
GET starts when it is due. On a machine with fewer than three free cores they also wait for a core:
compare with the rows where the one client sends nothing.

Examples:
  npm run load -- info --quick
  npm run load -- info --idle 10,1000,9999 --builds patched,stock`,
  rounds: 3,
  duration: 2,
  quick: { rounds: 1, duration: 1 },
  seconds: { quick: null, usual: 45, full: 45 },
  configure(command) {
    addBuilds(command, ['patched'])
    command
      .addOption(
        numbersOption('--idle <list>', 'connections that only stay', {
          ...{ min: 0, max: 1_000_000, defaults: [10, 9_999] },
        }),
      )
      .option('--rate <n>', 'GETs per second in all', wholeNumber(1, 100_000), 1_000)
  },
  isolated: ({ builds }) => builds,

  factors: [
    {
      ...{ name: 'idle', label: 'beside' },
      text: (value) => `${value.toLocaleString('en-US')} idle`,
    },
    { name: 'build', label: 'build' },
    { name: 'command', label: 'one client sends' },
  ],
  subject: 'command',
  metrics: [
    {
      ...{ name: 'mainCpuShare', label: 'main thread CPU, of a core' },
      ...{ unit: 'share of a core', format: 'percent' },
    },
    {
      ...{ name: 'answersPerSecond', label: 'answers/s', unit: 'answers/s' },
      ...{ kind: 'pace', better: 'higher', least: 0.1 },
    },
    {
      ...{ name: 'mainCpuMillis', label: 'main thread CPU ms /answer', unit: 'ms' },
      ...{ kind: 'cpu', better: 'lower', least: 0.01 },
    },
    { ...{ name: 'p50', label: 'GET p50 ms', unit: 'ms' }, ...latency },
    { ...{ name: 'p99', label: 'GET p99 ms', unit: 'ms' }, ...latency },
    { name: 'max', label: 'GET longest ms', unit: 'ms' },
  ],
  progress: ['mainCpuShare', 'p50', 'p99'],
  loadOptions: ['rate'],
  baseline: () => ({ command: NOTHING }),

  async prepare(context, { builds, idle }) {
    await requireConnections(Math.max(...idle) + VICTIMS)
    const servers = new Map<string, RedisServer>()
    for (const count of idle) {
      for (const build of builds) {
        const config = { maxclients: String(Math.max(10_000, count + VICTIMS + 100)) }
        const server = await context.startRedis({ build, config })
        await fillKeys(server, 1, 3)
        const fleet = await holdConnections(server, count, context.signal)
        context.defer(() => fleet.close())
        servers.set(`${count} ${build}`, server)
      }
    }
    return servers
  },

  cases: (_, { builds, idle }) =>
    idle.flatMap((count) =>
      builds.flatMap((build) => commands.map((command) => ({ idle: count, build, command }))),
    ),

  async measure({ idle, build, command }, servers, { options: { rate, duration }, context }) {
    const server = servers.get(`${idle} ${build}`)
    if (!server) throw new RangeError(`no server for ${build} beside ${idle}`)
    const { signal } = context
    const end = { seconds: duration }
    const common = { target: server, mode: 'long', end, signal } as const
    const words = String(command).split(' ')
    const before = await server.cpu()
    const [asked, victims] = await Promise.all([
      command === NOTHING ? null : generateLoad({ ...common, connections: 1, command: words }),
      generateLoad({ ...common, connections: VICTIMS, command: ['GET', '{key}'], rate }),
    ])
    const { mainCpuSeconds, seconds } = cpuBetween(before, await server.cpu())
    const { p50, p99, max } = victims.latency
    return {
      values: {
        mainCpuShare: mainCpuSeconds / seconds,
        answersPerSecond: asked && asked.completed / asked.seconds,
        mainCpuMillis: asked && (mainCpuSeconds * 1_000) / asked.completed,
        ...{ p50, p99, max },
      },
      errors: victims.errors,
    }
  },

  sections: (rows, { options }) => [
    {
      title: 'What one client costs the others',
      charts: rows
        .by('idle')
        .flatMap(({ rows: beside }) => beside.by('build'))
        .map(({ value, rows: own }) => {
          const where = `${own.all[0]?.text('idle')} connections, ${value}`
          return bars(own, 'p99', `p99 of the others' GETs, beside ${where}`)
        }),
      tables: [
        tableOf(rows, {
          caption: `One client sends a command without pause; ${VICTIMS} others send ${figure(Number(options.rate))} GET/s meanwhile`,
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
      commands.flatMap((command) => {
        const same = own
          .where({ command })
          .all.toSorted((a, b) => Number(a.case.idle) - Number(b.case.idle))
        const [few, many] = [same[0], same.at(-1)]
        const [less, more] = [few, many].map((row) => row?.median('mainCpuMillis') ?? null)
        if (!few || !many || few === many || !less || !more) return []
        return [
          `${command} (${build}): an answer costs ${figure(more / less)} times as much beside ${many.text('idle')} connections as beside ${few.case.idle}.`,
        ]
      }),
    ),
  published: [
    { what: 'INFO, no idle connections', value: 20, unit: '% of a core', source, ...of(0) },
    { what: 'INFO, 9,999 idle connections', value: 80, unit: '% of a core', source, ...of(9_999) },
  ],
}
