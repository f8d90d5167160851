import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { generateLoad, holdConnections, type Latency } from '../../drivers/redis/generator/load.ts'
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
import { summarize } from '../../statistics.ts'
import { figure, percent, withRange } from '../../table.ts'
import { infoFigures } from '../documents.ts'
import type { Context, Experiment, Server } from '../experiment.ts'
import { interleave, samplesOf } from '../rounds.ts'

interface InfoOptions extends RoundsOptions, BuildsOptions {
  idle: number[]
  rate: number
}

/** Clients that share the rate of GETs: an answer that takes long holds each of them up once. */
const VICTIMS = 50

/** What one client asks for without pause; null: nobody asks. */
const questions = [null, 'INFO', 'CLIENT LIST'] as const

interface Run {
  /** Of the main thread, as a share of a core, 0 to 1; what the victims cost included. */
  mainCpuShare: number
  /** Per second; 0 when nobody asks. */
  answersPerSecond: number
  /** Of the main thread per answer, in milliseconds; null when nobody asks. */
  mainCpuMillis: number | null
  /** GETs of the victims. */
  victims: Latency & { perSecond: number }
}

/** What a client that asks for statistics without pause costs the server, and everybody else. */
export const info: Experiment<InfoOptions> = {
  name: 'info',
  summary: 'INFO and CLIENT LIST without pause, beside thousands of idle connections',
  about: `
In the documents one client that sent INFO without pause took 20 % of a core beside no others, and 80 %
beside 9,999 idle ones, because INFO walked all clients for two of its figures. Redis 5 to 8 keep
those figures up to date instead; CLIENT LIST still walks, as it has to.

What matters is what the others notice: ${VICTIMS} victims send GETs at a fixed rate, and the clock of each
GET starts when it is due. On a machine with fewer than three free cores they also wait for a core:
compare with the rows where nobody asks.

Examples:
  npm run load -- redis info --quick
  npm run load -- redis info --idle 10,1000,9999 --builds patched,stock`,

  configure(command) {
    addRounds(command, { rounds: 3, duration: 2 })
    addBuilds(command, ['patched'])
    command
      .addOption(
        numbersOption('--idle <list>', 'connections that only stay', {
          ...{ min: 0, max: 1_000_000, defaults: [10, 9_999] },
        }),
      )
      .option(
        '--rate <n>',
        'GETs per second of the victims, together',
        wholeNumber(1, 100_000),
        1_000,
      )
  },
  quick: { rounds: 1, duration: 1 },
  isolated: ({ builds }) => builds,

  async run(context, options) {
    const { rounds, duration, builds, idle, rate } = options
    await requireConnections(Math.max(...idle) + VICTIMS)
    const servers: { server: Server; idle: number }[] = []
    for (const count of idle) {
      for (const build of builds)
        servers.push({ server: await startBeside(context, build, count), idle: count })
    }
    const variants = servers.flatMap((one) => questions.map((question) => ({ ...one, question })))
    const label = ({ server, idle: count, question }: (typeof variants)[number]) =>
      [
        `${count.toLocaleString('en-US').padStart(6)} idle`,
        (question ?? 'nobody asks').padEnd('CLIENT LIST'.length),
        ...(builds.length > 1 ? [server.build] : []),
      ].join('  ')
    const taken = await interleave(context, {
      variants,
      rounds,
      label,
      measure: ({ server, question }) =>
        ask(context, server, question, { seconds: duration, rate }),
      describe: ({ mainCpuShare, victims }) =>
        `CPU ${percent(mainCpuShare)}, GET p50 ${figure(victims.p50)} p99 ${figure(victims.p99)} ms`,
    })
    const summaries = variants.map((variant) => {
      const runs = samplesOf(taken, variant)
      const over = (value: (run: Run) => number) => summarize(runs.map(value))
      const { question } = variant
      return {
        build: variant.server.build,
        idle: variant.idle,
        question,
        label: label(variant),
        mainCpuPercent: over((run) => run.mainCpuShare * 100),
        answersPerSecond: over((run) => run.answersPerSecond),
        mainCpuMillis: question ? over((run) => run.mainCpuMillis ?? 0) : null,
        p50: over(({ victims }) => victims.p50),
        p99: over(({ victims }) => victims.p99),
        max: over(({ victims }) => victims.max),
      }
    })
    return {
      tables: [
        {
          title: `One client asks without pause; ${VICTIMS} others send ${figure(rate)} GET/s meanwhile`,
          head: [
            'beside, asked for',
            'CPU of the main\nthread, % of a core',
            'answers/s\nmedian (range)',
            'main thread\nms/answer',
            'GET\np50 ms',
            'GET\np99 ms',
            'GET\nlongest ms',
          ],
          rows: summaries.map((row) => [
            row.label,
            withRange(row.mainCpuPercent),
            row.question ? withRange(row.answersPerSecond) : '',
            row.mainCpuMillis ? figure(row.mainCpuMillis.median) : '',
            withRange(row.p50),
            withRange(row.p99),
            figure(row.max.median),
          ]),
        },
      ],
      conclusions: conclusions(summaries),
      documents: infoFigures,
      data: {
        summaries,
        samples: taken.map(({ variant, round, sample }) => ({
          build: variant.server.build,
          idle: variant.idle,
          question: variant.question,
          round,
          ...sample,
        })),
      },
    }
  },
}

async function startBeside(
  context: Context,
  build: Server['build'],
  idle: number,
): Promise<Server> {
  const config = { maxclients: String(Math.max(10_000, idle + VICTIMS + 100)) }
  const server = await context.startRedis({ build, config })
  await fillKeys(server, 1, 3)
  const fleet = await holdConnections(server, idle, context.signal)
  context.defer(() => fleet.close())
  return server
}

async function ask(
  { signal }: Context,
  server: Server,
  question: (typeof questions)[number],
  { seconds, rate }: { seconds: number; rate: number },
): Promise<Run> {
  const common = { target: server, mode: 'long', end: { seconds }, signal } as const
  const before = await server.cpu()
  const [asked, victims] = await Promise.all([
    question ? generateLoad({ ...common, connections: 1, command: question.split(' ') }) : null,
    generateLoad({ ...common, connections: VICTIMS, command: ['GET', '{key}'], rate }),
  ])
  const { mainCpuSeconds, seconds: measured } = cpuBetween(before, await server.cpu())
  return {
    mainCpuShare: mainCpuSeconds / measured,
    answersPerSecond: asked ? asked.completed / asked.seconds : 0,
    mainCpuMillis: asked ? (mainCpuSeconds * 1_000) / asked.completed : null,
    victims: { perSecond: victims.completed / victims.seconds, ...victims.latency },
  }
}

interface Cost {
  build: string
  idle: number
  question: string | null
  mainCpuMillis: { median: number } | null
}

/** How the cost of an answer grows from the fewest to the most idle connections. */
function conclusions(rows: readonly Cost[]): string[] {
  return rows.flatMap((row) => {
    const same = rows.filter(
      ({ build, question }) => build === row.build && question === row.question,
    )
    const [few] = same.toSorted((a, b) => a.idle - b.idle)
    if (!few?.mainCpuMillis || !row.mainCpuMillis || few === row || row !== same.at(-1)) return []
    const times = row.mainCpuMillis.median / few.mainCpuMillis.median
    return [
      `${row.question} (${row.build}): an answer costs ${figure(times)} times as much beside ` +
        `${row.idle.toLocaleString('en-US')} idle connections as beside ${few.idle}.`,
    ]
  })
}
