import { strategyNames } from '@onetrip/session-store'
import { seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { apiOf, type HttpBench, openBench } from '../../drivers/http/bench.ts'
import {
  baselineVariant,
  saturate,
  saturationDoubts,
  saturationMetrics,
} from '../../drivers/http/saturation.ts'
import {
  addTarget,
  addWorkload,
  type WorkloadFlags,
  withWorkload,
  workloadOptionNames,
} from '../../drivers/http/shared-options.ts'
import type { TargetOptions } from '../../drivers/http/target.ts'
import { namesOption } from '../../drivers/redis/options.ts'
import type { Experiment, RoundOptions } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section, Table } from '../../experiment/section.ts'
import { packageVersion } from '../../measure/package-version.ts'
import { bars, groups } from '../../reporting/charts.ts'
import { errors, interval, range, ratio, tableOf } from '../../reporting/columns.ts'
import { descriptions, variants } from '../../variants.ts'

interface HttpOptions extends WorkloadFlags, TargetOptions {
  /** Seconds, per variant. */
  warmup: number
}

/** The variants of the API beside each other, each as fast as it can. */
export const http: Experiment<HttpOptions, HttpBench> = {
  name: 'http',
  title: 'Page views over HTTP, at full speed',
  summary: 'compare the variants of the API at full speed',
  group: 'Over HTTP',
  about: `
It measures what npm start runs. If nothing runs, or not what --variants, --redis-build, --transport or
--workers ask for, it starts a stack of its own and removes it afterwards.

Each round runs every variant once, in changing order. Rates are medians over the rounds, with the range; a
ratio compares two runs of the same round. How it measures, and what it cannot say: docs/method.md

Variants: ours (${strategyNames.join(', ')}), and:
${variants
  .filter((name) => !(strategyNames as readonly string[]).includes(name))
  .map((name) => `  ${name.padEnd(17)}${descriptions[name]}`)
  .join('\n')}

Workloads:
  realistic   many sessions; POST /views, and a share of GET /me, /me/views and /items/popular
  documents   one session and one item, POST /views only: what the documents measured

Environment:
  REDIS_URL         with --url: the Redis of those APIs, to be watched (it needs INFO only)
  REDIS_PASSWORD_FILE   a file with the password for REDIS_URL
  WORKERS           processes of each API of an own stack, or auto (default 1; --workers goes first)
  REDIS_URL, REDIS_SERVER, ONETRIP_HOME, ONETRIP_STATE   as for npm start (npm start -- --help)
  REDIS_POOL_SIZE   connections that each API of an own stack shares (default 1)
  REDIS_IO_THREADS  I/O threads of the Redis of an own stack

Examples:
  npm run load
  npm run load -- --quick
  npm run load -- --quick --compare before.json   # exits with 4 when something got worse
  npm run load -- --connections 8 --duration 2 --rounds 3
  npm run load -- --variants naive,sequential,pipeline --json results.json
  npm run load -- --redis-build baseline --transport unix
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- --url http://127.0.0.1:3000,http://127.0.0.1:3001`,
  rounds: 5,
  duration: 5,
  quick: { rounds: 5, duration: 2, warmup: 1 },
  full: { rounds: 7, duration: 5, warmup: 3, variants: [...variants] },
  seconds: { quick: 35, usual: 70, full: 620 },
  configure(command) {
    command
      .option('--connections <n>', 'HTTP connections at the same time', wholeNumber(1, 10_000), 64)
      .addOption(namesOption('--variants <list>', variants, ['naive', 'batch']))
      .option('--warmup <seconds>', 'per variant, before the first round', seconds(0, 600), 2)
    addTarget(addWorkload(command))
  },
  complete: ({ variants, ...options }) =>
    withWorkload({ ...options, variants: options.url ? [] : variants }),

  factors: [{ name: 'variant', label: 'variant' }],
  subject: 'variant',
  metrics: saturationMetrics,
  progress: ['requestsPerSecond', 'p99'],
  doubts: saturationDoubts,
  loadOptions: ['connections', ...workloadOptionNames],
  baseline: baselineVariant,

  async prepare(context, options) {
    context.describe('software', { Generator: packageVersion('autocannon') })
    return await openBench(context, withWorkload(options))
  },
  cases: ({ apis }) => apis.map(({ variant }) => ({ variant })),
  warmUp: (cases, { warmup }) => (warmup > 0 ? cases : []),
  measure({ variant }, bench, { round, options, context: { signal } }) {
    const seconds = round === 0 ? options.warmup : options.duration
    const api = apiOf(bench, variant)
    return saturate(bench, api, { seconds, signal })
  },

  sections: (rows, { options }) => [
    throughput(rows, options as unknown as HttpOptions & RoundOptions),
    {
      title: 'CPU time per request',
      paragraphs: [
        'CPU time per request and the ratios carry over to other machines better than the rates: generator, API and Redis share the cores of this one.',
      ],
      charts: [
        groups(rows, {
          kind: 'stacked',
          title: 'CPU time per request, by who used it',
          unit: 'µs of CPU per request',
          metrics: { API: 'apiCpuMicros', Redis: 'redisCpuMicros' },
        }),
      ],
      tables: [
        tableOf(rows, {
          caption: 'CPU time per request, and how busy the generator was',
          columns: ['apiCpuMicros', 'redisCpuMicros', 'generatorCpuMicros', 'generatorBusy'],
        }),
      ],
      pageOnly: true,
    },
    {
      title: 'Latency at full speed',
      tables: [
        tableOf(rows, {
          caption: 'Latency at full speed: medians of the rounds',
          columns: ['p50', 'p75', 'p90', 'p95', 'p99', 'p999', 'max'],
        }),
      ],
    },
    { title: 'What the variants are', tables: [variantsTable(rows)], pageOnly: true },
  ],
  claims: (rows, { options }) => claimsOf(rows, Number(options.reads) > 0),
}

/** Those that the README shows; all are in load/results. */
const main = 'naive naive-lean connect-redis node-redis pipeline batch noop bare'.split(' ')

function throughput(rows: Rows, { connections }: HttpOptions & RoundOptions): Section {
  const isShared = rows.all.some((row) => (row.median('roundTrips') ?? 0) < 1)
  const [first] = rows.all
  const references = ['naive', 'naive-lean', 'pipeline', 'noop'].filter((variant) =>
    rows.find({ variant }),
  )
  return {
    title: 'Throughput',
    paragraphs: [
      `Each of ${counted(connections, 'connection')} sends its next request as soon as the last one was answered. Figures are medians over ${counted(rows.rounds, 'round')}, with the range.${isShared ? ' Requests whose commands are sent together share a round trip.' : ''} Requests/s counts answers with 2xx only.`,
    ],
    charts: [
      bars(
        rows,
        'requestsPerSecond',
        'Requests per second: medians of the rounds, with the range; hatched is what is marked in the table, an outline is a limit',
      ),
    ],
    tables: [
      perRequest(
        rows.filter((row) => main.includes(row.subject)),
        'The main variants, per request that reached the API',
      ),
      ...(rows.all.every((row) => main.includes(row.subject))
        ? []
        : [perRequest(rows, 'All variants, per request that reached the API')]),
      ...(first && rows.all.length > 1
        ? [
            tableOf(rows, {
              caption: 'Requests per second as a multiple, round by round',
              columns: references.map((variant) =>
                interval('requestsPerSecond', `× ${variant}`, { variant }),
              ),
            }),
          ]
        : []),
    ].filter(({ rows }) => rows.length > 0),
  }
}

const perRequest = (rows: Rows, caption: string): Table =>
  tableOf(rows, {
    caption,
    columns: [
      range('requestsPerSecond', rows),
      ratio('requestsPerSecond', `× ${rows.all[0]?.baseline(rows)?.subject ?? 'first'}`),
      ...['p50', 'p99', 'connections', 'commands', 'roundTrips'],
      ...['apiCpuMicros', 'redisCpuMicros'],
      errors,
    ],
  })

const variantsTable = (rows: Rows): Table => ({
  caption: 'How the commands of a request reach Redis',
  head: ['variant', 'how'],
  rows: Object.entries(descriptions).filter(([variant]) => rows.find({ variant })),
  texts: [0, 1],
})

/** Ours with what an application would write, if they ran: what it is worth, and what makes the difference. */
function claimsOf(rows: Rows, reads: boolean): string[] {
  const find = (...names: string[]) => names.flatMap((variant) => rows.find({ variant }) ?? [])[0]
  const base = find('naive', 'naive-lean', 'sequential', 'pipeline')
  const hero = find('batch', 'pipeline', 'sequential')
  if (!base || !hero || base === hero) return []
  const ratio = hero.ratio('requestsPerSecond', base)
  if (!ratio || base.doubts.length > 0 || hero.doubts.length > 0) {
    return [
      `No ratio is claimed between ${hero.subject} and ${base.subject}: their rows are marked.`,
    ]
  }
  const { median, min, max, interval } = ratio
  const sure = interval
    ? `95 % sure: ${figure(interval.low)} to ${figure(interval.high)}; round by round: ${figure(min)} to ${figure(max)}`
    : 'one round'
  return [
    `${hero.subject} answers ${figure(median)} times as many ${reads ? 'requests' : 'page views'} a second as ${base.subject} (${sure}).`,
    `For each request ${deeds(base)}; ${deeds(hero)}.`,
  ]
}

/** `naive opens 1 connection to Redis, waits for 5 round trips and sends 6 commands`. */
function deeds(row: Row): string {
  const some = (metric: string, noun: string) => {
    const number = String(Number((row.median(metric) ?? 0).toFixed(2)))
    return `${number === '0' ? 'no' : number} ${noun}${number === '1' ? '' : 's'}`
  }
  return `${row.subject} opens ${some('connections', 'connection')} to Redis, waits for ${some('roundTrips', 'round trip')} and sends ${some('commands', 'command')}`
}
