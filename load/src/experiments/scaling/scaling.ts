import { availableParallelism } from 'node:os'
import { apiSettings } from '@onetrip/stack/api.ts'
import { listOf, seconds } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { Option } from 'commander'
import {
  baselineVariant,
  saturate,
  saturationDoubts,
  saturationMetrics,
} from '../../drivers/http/saturation.ts'
import { logIn } from '../../drivers/http/sessions.ts'
import {
  addWorkload,
  type WorkloadFlags,
  withWorkload,
  workloadOptionNames,
} from '../../drivers/http/shared-options.ts'
import { workload } from '../../drivers/http/workload.ts'
import { describeLink, links } from '../../drivers/redis/links.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { Experiment, RoundOptions } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import type { Case } from '../../experiment/shape.ts'
import { packageVersion } from '../../measure/package-version.ts'
import { lines } from '../../reporting/charts.ts'
import { errors, range, ratio, tableOf } from '../../reporting/columns.ts'
import { clientsOf, isContender, type Variant, variants } from '../../variants.ts'
import { apiKey, linkOf, type RunningApi, startApis } from './apis.ts'

const series = ['connections', 'workers', 'distance'] as const
type Series = (typeof series)[number]

interface ScalingOptions extends Omit<WorkloadFlags, 'connections' | 'url'> {
  only: Series[]
  connections: number[]
  workers: number[]
  /** Names of links; each says what it is. */
  links: string[]
  variants: Variant[]
  /** Seconds, per API. */
  warmup: number
}

interface Bench {
  monitor: RedisMonitor
  tokens: readonly string[]
  /** By `apiKey`. */
  apis: ReadonlyMap<string, RunningApi>
}

/** What stays the same while something else changes. */
const usual = { connections: 64, workers: 1, link: 'loopback' }

const usualLinks = ['unix', 'loopback', 'switch', '1ms@1Gb/s', 'vpn']
const usualVariants: Variant[] = ['naive', 'sequential', 'pipeline', 'batch']
const RATE = 'requestsPerSecond'

/** The variants over HTTP while one thing changes: connections, workers, or the link to Redis. */
export const scaling: Experiment<ScalingOptions, Bench> = {
  name: 'scaling',
  title: 'Scaling: connections, workers, distance to Redis',
  summary: 'compare the variants by connections, workers, and distance to Redis',
  group: 'Over HTTP',
  about: `
Full speed, as with npm run load -- http, while one thing changes and the rest stays as it is: ${usual.connections}
connections, one worker, Redis at 127.0.0.1.
  connections   HTTP connections at the same time, 1 to 1,000
  workers       processes of the API. The generator can fill a core, and so can each worker: rows with too
                few cores for all are marked, and say little about a bigger machine. Variants that are no
                strategy of the store have one worker only.
  distance      links to Redis: Unix socket, loopback, and through a relay 0.271 ms (a switch), 1 ms, and
                48 ms with 1.8 Mb/s (a VPN). All connections share the bandwidth of a link. The same links
                without HTTP, beside the documents' table 4: npm run load -- store

With 500 connections and more a run takes at least 3 s, over links of 10 ms and more 6 s.

It starts its own Redis, APIs and relays, and removes them afterwards.

Examples:
  npm run load -- scaling
  npm run load -- scaling --quick
  npm run load -- scaling --only distance --links loopback,switch,5ms@100Mb/s
  npm run load -- scaling --only connections --connections 1,64,1000 --variants noop,batch,node-redis
  npm run load -- scaling --only workers --workers 1,2,4 --variants batch
  npm run load -- scaling --json scaling.json --html scaling.html`,
  rounds: 3,
  duration: 1,
  quick: {
    ...{ rounds: 1, duration: 0.5, warmup: 0.2, variants: ['naive', 'pipeline', 'batch'] },
    ...{ connections: [1, 64, 1_000], links: ['unix', 'switch', 'vpn'] },
  },
  full: { rounds: 5, duration: 2, warmup: 1 },
  seconds: { quick: 60, usual: 320, full: 760 },
  configure(command) {
    command
      .addOption(
        new Option('--only <list>', `out of ${series.join(', ')}`)
          .argParser(listOf(series))
          .default([...series], 'all'),
      )
      .addOption(
        numbersOption('--connections <list>', 'HTTP connections at the same time', {
          ...{ min: 1, max: 10_000, defaults: [1, 4, 16, 64, 256, 1_000] },
        }),
      )
      .addOption(
        numbersOption('--workers <list>', 'processes of the API', {
          ...{ min: 1, max: 64, defaults: [1, 2] },
        }),
      )
      .addOption(
        new Option('--links <list>', 'links to Redis (see npm run load -- store --help)')
          .argParser((text) => links(text).map(({ name }) => name))
          .default(usualLinks, usualLinks.join(',')),
      )
      .addOption(
        new Option('--variants <list>', `out of ${variants.join(', ')}`)
          .argParser(listOf(variants))
          .default(usualVariants, usualVariants.join(',')),
      )
      .option('--warmup <seconds>', 'per API, before the first round', seconds(0, 600), 0.5)
    addWorkload(command)
  },
  complete: (options) => ({
    ...loadOf(options),
    connections: options.connections.toSorted((a, b) => a - b),
  }),

  factors: [
    { name: 'series', label: 'series', text: (value) => `by ${value}` },
    { name: 'connections', label: 'HTTP connections' },
    { name: 'workers', label: 'workers' },
    { name: 'link', label: 'link' },
    { name: 'variant', label: 'variant' },
  ],
  subject: 'variant',
  metrics: [...saturationMetrics, { name: 'pingMs', label: 'PING ms', unit: 'ms' }],
  progress: [RATE, 'p99'],
  doubts: {
    ...saturationDoubts,
    crowded: {
      mark: '‡',
      text: 'The workers and the generator could fill more cores than there are: they wait for each other.',
      keepsRatios: true,
    },
  },
  loadOptions: workloadOptionNames,
  baseline: (one, cases) =>
    baselineVariant(
      one,
      cases.filter((other) => placeOf(other) === placeOf(one)),
    ),

  async prepare(context, options) {
    const wanted = casesOf(options)
    if (wanted.length === 0) {
      throw new Problem('--workers: what --variants names runs as one process only.')
    }
    const redis = await context.startRedis({ build: 'patched', config: { appendonly: 'yes' } })
    const monitor = await RedisMonitor.connect(redis.url)
    context.defer(() => monitor.close())
    context.describe('software', {
      Generator: packageVersion('autocannon'),
      Clients: clientsOf(options.variants),
    })
    context.describe('load', {
      "Redis's I/O threads": redis.facts.ioThreads,
      'pool size': apiSettings().poolSize,
    })
    const apis = await startApis(context, redis, wanted)
    const [first] = apis.values()
    const { tokens } = await context.step('Logging users in', () =>
      logIn(first?.url ?? '', loadOf(options).sessions, context.signal),
    )
    return { monitor, tokens, apis }
  },
  cases: (_, options) => casesOf(options),
  /** Once for each API, unless its Redis is so far that the warm-up would end before the first answer. */
  warmUp(cases, { warmup }) {
    if (warmup === 0) return []
    const keys = cases.map(apiKey)
    return cases.filter((one, index) => keys.indexOf(apiKey(one)) === index && !isFar(one))
  },
  async measure(one, { monitor, tokens, apis }, { round, options, context }) {
    const api = apis.get(apiKey(one))
    if (!api) throw new RangeError(`there is no API for ${apiKey(one)}`)
    const load = { ...loadOf(options), connections: Number(one.connections), tokens }
    const foreign = { apis: false, redis: false }
    const measured = await saturate(
      { monitor, foreign, owned: false, calls: () => workload(load) },
      api,
      {
        seconds: round === 0 ? options.warmup : secondsOf(one, options),
        signal: context.signal,
      },
    )
    return {
      ...measured,
      values: { ...measured.values, pingMs: api.pingMs },
      doubts: [
        ...(measured.doubts ?? []),
        ...(Number(one.workers) + 1 > availableParallelism() ? ['crowded'] : []),
      ],
    }
  },

  sections: (rows) => seriesOf(rows).map(([name, own]) => section(name, own)),
  claims: (rows) => seriesOf(rows).flatMap(([name, own]) => claimsOf(name, own)),
}

/** The workload, with at least a session for each connection. */
const loadOf = (options: ScalingOptions & RoundOptions) =>
  withWorkload({ ...options, connections: Math.max(...options.connections) })

function casesOf(options: ScalingOptions): Case[] {
  const points: Record<Series, Case[]> = {
    connections: options.connections.map((connections) => ({ ...usual, connections })),
    workers: options.workers.map((workers) => ({ ...usual, workers })),
    distance: options.links.map((link) => ({ ...usual, link })),
  }
  return options.only.flatMap((series) =>
    points[series].flatMap((point) =>
      options.variants
        .filter((variant) => point.workers === 1 || !isContender(variant))
        .map((variant) => ({ series, ...point, variant })),
    ),
  )
}

/** Cases that differ in their variant only have the same. */
const placeOf = ({ series, connections, workers, link }: Case) =>
  JSON.stringify([series, connections, workers, link])

const FAR_MS = 10

/** Whether a request takes so long that the usual run would be over before its answer. */
const isFar = ({ link }: Case) => (linkOf(link).distant?.roundTripMs ?? 0) >= FAR_MS

/** From this many connections on, a run of the usual length has an answer or two for each of them. */
const MANY = 500
const [MANY_SECONDS, FAR_SECONDS] = [3, 6]

/** How long a run of a case takes. */
export function secondsOf(one: Case, { duration }: Pick<RoundOptions, 'duration'>): number {
  const least = isFar(one) ? FAR_SECONDS : Number(one.connections) >= MANY ? MANY_SECONDS : 0
  return Math.max(least, duration)
}

const titles: Record<Series, string> = {
  connections: 'By HTTP connections',
  workers: 'By workers, the processes of the API',
  distance: 'By distance to Redis',
}

/** The factor that a series changes. */
const changed = { connections: 'connections', workers: 'workers', distance: 'link' } as const

const seriesOf = (rows: Rows): [Series, Rows][] =>
  rows.by('series').map(({ value, rows: own }) => [value as Series, own])

function section(name: Series, rows: Rows): Section {
  const over = changed[name]
  const base = rows.all[0]?.baseline(rows)?.subject
  return {
    title: titles[name],
    paragraphs: name === 'distance' ? [`${linksOf(rows).join('; ')}.`] : [],
    charts:
      rows.values(over).length > 1
        ? [
            lines(rows, {
              ...{ metric: RATE, over, logarithmic: name === 'distance' },
              title: `Requests per second, ${titles[name].toLowerCase()}`,
            }),
          ]
        : [],
    tables: [
      tableOf(rows, {
        caption: `${titles[name]}: medians of the rounds`,
        factors: [over, 'variant'],
        columns: [
          ...(name === 'distance' ? ['pingMs'] : []),
          range(RATE, rows),
          ratio(RATE, `× ${base}`),
          ...['p50', 'p99', 'apiCpuMicros', 'redisCpuMicros'],
          errors,
        ],
      }),
    ],
  }
}

const linksOf = (rows: Rows) => rows.values('link').map((link) => describeLink(linkOf(link)))

/** How ours compares with the reference at both ends of a series, as far as their rows have no marks. */
function claimsOf(name: Series, rows: Rows): string[] {
  const [hero = ''] = ['batch', 'pipeline'].filter((variant) => rows.find({ variant }))
  const claims = rows.where({ variant: hero }).all.flatMap((row) => {
    const base = row.baseline(rows)
    const times = row.ratio(RATE, base)
    if (!base || !times || row.doubts.length > 0 || base.doubts.length > 0) return []
    const { subject } = base
    return [{ base: subject, times: figure(times.median), place: placeText[name](row.case) }]
  })
  const [first, last] = [claims[0], claims.at(-1)]
  if (!first || !last || first === last) return []
  return [
    `${titles[name]}: ${hero} answers ${first.times} times as many requests a second as ${first.base} ${first.place}, ${last.times} times ${last.place}.`,
  ]
}

const placeText: Record<Series, (one: Case) => string> = {
  connections: ({ connections }) => `with ${counted(Number(connections), 'connection')}`,
  workers: ({ workers }) => `with ${counted(Number(workers), 'worker')}`,
  distance: ({ link }) => `over ${link}`,
}
