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
} from '../../drivers/http/shared-options.ts'
import type { TargetOptions } from '../../drivers/http/target.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Section, Table } from '../../experiment/section.ts'
import { packageVersion } from '../../measure/machine.ts'
import { errors, range, ratio, tableOf } from '../../reporting/columns.ts'
import { descriptions, variants } from '../../variants.ts'
import { claimsOf } from './claims.ts'

type HttpOptions = WorkloadFlags & TargetOptions

const RATE = 'requestsPerSecond'

/** Compares the variants of the API at full speed. */
export const http: Experiment<HttpOptions, HttpBench> = {
  name: 'http',
  title: 'Page views over HTTP, at full speed',
  summary: 'compare the variants of the API at full speed',
  about: `
Starts Redis and the APIs, and stops them at the end. docs/method.md describes the method and its limits.

Variants:
${variants.map((name) => `  ${name.padEnd(17)}${descriptions[name]}`).join('\n')}

Workloads:
  realistic   many sessions; POST /views, and a share of GET /me, /me/views and /items/popular
  articles    one session and one item, only POST /views, as in the source articles
  sale        POST /items/:item/purchases of items on sale; buyers repeat some of the requests
  feed        POST /feed, and four times as many GET /feed and GET /me/feed
  unique      POST /items/:item/viewers: a Bloom filter with seven bits per viewer
  risk        GET /me/risk with the local cache (the naive variants have no cache)
The last four need variants of the store: docs/applications.md.

Environment:
  REDIS_URL, REDIS_PASSWORD_FILE   with --url: the Redis of those APIs (its user needs INFO only)
  WORKERS, REDIS_POOL_SIZE   of the stack that the command starts (default: 1)
  REDIS_IO_THREADS           of the Redis that the command starts (default: 1, off)
  REDIS_SERVER, ONETRIP_HOME, ONETRIP_STATE   as for npm start (npm start -- --help)

Examples:
  npm run load -- --variants naive,sequential,pipeline --json results.json
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- --url http://127.0.0.1:3000,http://127.0.0.1:3001`,
  rounds: 5,
  duration: 5,
  quick: { rounds: 5, duration: 2, warmup: 1 },
  full: { rounds: 7, duration: 5, warmup: 3, variants: [...variants] },
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
    {
      title: 'The variants',
      tables: [
        {
          caption: 'How the commands of a request reach Redis',
          head: ['variant', 'how'],
          rows: Object.entries(descriptions).filter(([variant]) => rows.find({ variant })),
          texts: [0, 1],
        },
      ],
      isDetail: true,
    },
  ],
  claims: claimsOf,
}

/** The variants of the first table. */
const main = 'naive naive-lean connect-redis node-redis pipeline batch noop bare'.split(' ')

function throughput(rows: Rows, { options }: Result): Section {
  const shown = rows.filter((row) => main.includes(row.subject))
  const isPart = shown.all.length > 0 && shown.all.length < rows.all.length
  return {
    title: 'Throughput',
    paragraphs: [
      `Each of ${counted(Number(options.connections), 'connection')} sends its next request when the last one is answered. Figures are medians over ${counted(rows.rounds, 'round')}, with the range. Requests whose commands are sent together share a round trip. Requests/s counts answers with 2xx only. The upper limits are noop, the API without Redis, and bare, a Fastify route.`,
      'CPU time per request and the ratios carry over to other machines better than the rates: generator, API and Redis share the cores of this one.',
    ],
    tables: [
      ...(isPart ? [perRequest(shown, 'The main variants')] : []),
      perRequest(rows, 'All variants'),
    ],
  }
}

const perRequest = (rows: Rows, which: string): Table =>
  tableOf(rows, {
    caption: `${which}, per request that reached the API`,
    columns: [
      range(RATE, rows),
      ratio(RATE, `× ${rows.all[0]?.baseline(rows)?.subject}`),
      'p50',
      'p99',
      'connections',
      'commands',
      'roundTrips',
      'apiCpuMicros',
      'redisCpuMicros',
      errors,
    ],
  })
