import { strategyNames } from '@onetrip/session-store'
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
  requestOptionNames,
  type WorkloadFlags,
  withWorkload,
} from '../../drivers/http/shared-options.ts'
import type { TargetOptions } from '../../drivers/http/target.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Section, Table } from '../../experiment/section.ts'
import { packageVersion } from '../../measure/machine.ts'
import { chartsOf, groups, timeCharts } from '../../reporting/charts.ts'
import { errors, interval, range, ratio, sectionOf, tableOf } from '../../reporting/columns.ts'
import { contenders, descriptions, variants } from '../../variants.ts'
import { claimsOf, headlineOf } from './claims.ts'
import { redisWork } from './redis-work.ts'

type HttpOptions = WorkloadFlags & TargetOptions

const RATE = 'requestsPerSecond'

/** The variants of the API beside each other, each as fast as it can. */
export const http: Experiment<HttpOptions, HttpBench> = {
  name: 'http',
  title: 'Page views over HTTP, at full speed',
  detail({ options: { workload = 'realistic', ioThreads } }) {
    const threads = ioThreads === undefined ? [] : `${ioThreads} I/O threads`
    return [workload === 'realistic' ? [] : `workload ${workload}`, threads].flat().join(', ')
  },
  summary: 'compare the variants of the API at full speed',
  group: 'Over HTTP',
  about: `
It measures what npm start runs. If nothing runs, or not what --variants, --redis-build, --transport,
--io-threads or --workers ask for, it starts a stack of its own and removes it afterwards. docs/method.md
says how it measures, and what that cannot say.

Variants: ours (${strategyNames.join(', ')}), and:
${contenders.map((name) => `  ${name.padEnd(17)}${descriptions[name]}`).join('\n')}

Workloads:
  realistic   many sessions; POST /views, and a share of GET /me, /me/views and /items/popular
  documents   one session and one item, POST /views only: what the source articles measured
  sale        POST /items/:item/purchases of items on sale, some of them repeated by the same buyer
  feed        POST /feed, and four times as many GET /feed and GET /me/feed
  unique      POST /items/:item/viewers: a Bloom filter with seven bits for each viewer
  risk        GET /me/risk through the local cache; the naive variants have none
The last four are for the variants of the store: docs/applications.md.

Any HTTP service: --url with a path, --method, --header or --body sends these requests, and nothing else.
Then there are no figures of Redis, and no CPU time of the service. Values of headers and bodies stay out of
results; URLs do not.

Environment:
  REDIS_URL, REDIS_PASSWORD_FILE   with --url: the Redis of those APIs, to be watched (it needs INFO only)
  WORKERS, REDIS_POOL_SIZE   of a stack of its own (default 1)
  REDIS_IO_THREADS           likewise (default: by cores; 1 is off)
  SALE_METHOD   of a stack of its own, with --workload sale: script, compensated, optimistic or naive
  REDIS_SERVER, ONETRIP_HOME, ONETRIP_STATE   as for npm start (npm start -- --help)

Examples:
  npm run load -- --quick --compare before.json   # exits with 4 when something got worse
  npm run load -- --variants naive,sequential,pipeline --json results.json
  npm run load -- --quick --threshold 'batch:p99<50' --threshold errors=0
  npm run load -- --url http://127.0.0.1:8080/search?q=tea --threshold 'p99<20'   # any HTTP service
  npm run load -- --url http://127.0.0.1:8080/orders --header 'content-type: application/json' --body '{"n":1}'
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- --url http://127.0.0.1:3000,http://127.0.0.1:3001`,
  rounds: 5,
  duration: 5,
  quick: { rounds: 5, duration: 2, warmup: 1 },
  full: { rounds: 7, duration: 5, warmup: 3, variants: [...variants] },
  seconds: { quick: 35, usual: 70, full: 620 },
  configure(command) {
    addWorkload(command, { variants: ['naive', 'batch'], warmup: 2 })
    addTarget(command)
  },
  complete: withWorkload,

  factors: [{ name: 'variant' }],
  subject: 'variant',
  metrics: saturationMetrics,
  progress: [RATE, 'p99'],
  doubts: saturationDoubts,
  loadOptions: ['connections', ...requestOptionNames],
  baseline: baselineVariant,

  async prepare(context, options) {
    context.describe('software', { Generator: packageVersion('autocannon') })
    return await openBench(context, options)
  },
  cases: ({ apis }) => apis.map(({ variant }) => ({ variant })),
  warmUp: (cases, { warmup }) => (warmup > 0 ? cases : []),
  measure({ variant }, bench, { round, options, context: { signal } }) {
    const seconds = round === 0 ? options.warmup : options.duration
    return saturate(bench, apiOf(bench, variant), { seconds, signal })
  },

  sections: (rows, result) => [
    throughput(rows, result),
    sectionOf(rows, {
      title: 'Latency at full speed',
      caption: 'Latency at full speed, and how busy the generator was: medians of the rounds',
      columns: [
        ...['p50', 'p75', 'p90', 'p95', 'p99', 'p999', 'max'],
        ...['generatorCpuMicros', 'generatorBusy'],
      ],
    }),
    {
      title: 'What the variants are',
      tables: [
        {
          caption: 'How the commands of a request reach Redis',
          head: ['variant', 'how'],
          rows: Object.entries(descriptions).filter(([variant]) => rows.find({ variant })),
          texts: [0, 1],
        },
      ],
      pageOnly: true,
    },
    ...redisWork(rows),
  ],
  claims: claimsOf,
  headline: headlineOf,
}

/** Those that the README shows; all are in load/results. */
const main = 'naive naive-lean connect-redis node-redis pipeline batch noop bare'.split(' ')
const references = ['naive', 'naive-lean', 'pipeline', 'noop']
const knownIn = (rows: Rows) => references.filter((variant) => rows.find({ variant }))

function throughput(rows: Rows, { options }: Result): Section {
  const shown = rows.filter((row) => main.includes(row.subject))
  const known = knownIn(rows)
  const isPart = shown.all.length > 0 && shown.all.length < rows.all.length
  return {
    title: 'Throughput',
    paragraphs: [
      `Each of ${counted(Number(options.connections), 'connection')} sends its next request as soon as the last one was answered. Figures are medians over ${counted(rows.rounds, 'round')}, with the range. Requests whose commands are sent together share a round trip. Requests/s counts answers with 2xx only. A dashed line is a limit: the API without Redis (noop), or a bare route.`,
      'CPU time per request and the ratios carry over to other machines better than the rates: generator, API and Redis share the cores of this one.',
    ],
    charts: [
      ...chartsOf(rows, RATE),
      ...timeCharts(shown),
      groups(rows, {
        title: 'CPU time per request, by who used it',
        unit: 'µs of CPU per request',
        metrics: { API: 'apiCpuMicros', Redis: 'redisCpuMicros' },
      }),
    ],
    tables: [
      ...(isPart ? [perRequest(shown, 'The main variants')] : []),
      perRequest(rows, 'All variants'),
      ...(known.length > 0
        ? [
            tableOf(rows, {
              caption: 'Requests per second as a multiple, round by round',
              columns: known.map((variant) => interval(RATE, `× ${variant}`, { variant })),
            }),
          ]
        : []),
    ],
  }
}

const perRequest = (rows: Rows, which: string): Table =>
  tableOf(rows, {
    caption: `${which}, per request that reached the API`,
    columns: [
      range(RATE, rows),
      ...(rows.all.length > 1 || knownIn(rows).length > 0
        ? [ratio(RATE, `× ${rows.all[0]?.baseline(rows)?.subject}`)]
        : []),
      ...['p50', 'p99', 'connections', 'commands', 'roundTrips', 'apiCpuMicros', 'redisCpuMicros'],
      errors,
    ],
  })
