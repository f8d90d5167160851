import { availableParallelism } from 'node:os'
import { apiSettings } from '@onetrip/stack/api.ts'
import { workload } from '@onetrip/stack/measure/workload.ts'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
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
import { links } from '../../drivers/redis/links.ts'
import { namesOption, numbersOption } from '../../drivers/redis/options.ts'
import type { Experiment, RoundOptions } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { matches, type Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import type { Case } from '../../experiment/shape.ts'
import { packageVersion } from '../../measure/machine.ts'
import { chartsOf } from '../../reporting/charts.ts'
import { errors, range, ratio, sectionOf } from '../../reporting/columns.ts'
import { clientsOf, isContender } from '../../variants.ts'
import { apiKey, linkOf, type RunningApi, startApis } from './apis.ts'

/** The factors that change, one after the other. */
const series = ['connections', 'workers', 'link'] as const
type Series = (typeof series)[number]

interface ScalingOptions extends Omit<WorkloadFlags, 'connections' | 'url'> {
  only: Series[]
  connections: number[]
  workers: number[]
  ioThreads: number
  /** Names of links; each says what it is. */
  links: string[]
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
  connections   HTTP connections at the same time, 1 to 1,000. From 500 on a run takes at least 3 s
  workers       processes of the API. Rows with too few cores for these and the generator are marked, and
                say little about a bigger machine. Variants that are no strategy of the store have one
  link          to Redis: Unix socket, loopback, and through a relay 0.271 ms (a switch), 1 ms, and
                48 ms with 1.8 Mb/s (a VPN). From 10 ms on a run takes at least 6 s

It starts its own Redis, APIs and relays, and removes them afterwards.

Examples:
  npm run load -- scaling --only link --links loopback,switch,5ms@100Mb/s
  npm run load -- scaling --only connections --connections 1,64,1000 --variants noop,batch,node-redis`,
  rounds: 3,
  duration: 1,
  quick: {
    ...{ rounds: 1, duration: 0.5, warmup: 0.2, variants: ['naive', 'pipeline', 'batch'] },
    ...{ connections: [1, 64, 1_000], links: ['unix', 'switch', 'vpn'] },
  },
  full: { rounds: 5, duration: 2, warmup: 1 },
  seconds: { quick: 60, usual: 320, full: 760 },
  configure(command) {
    const connections = [1, 4, 16, 64, 256, 1_000]
    const text = 'HTTP connections at the same time'
    command
      .addOption(namesOption('--only <list>', series))
      .addOption(numbersOption('--connections <list>', text, [1, 10_000], connections))
      .addOption(numbersOption('--workers <list>', 'processes of the API', [1, 64], [1, 2]))
      .option('--io-threads <n>', 'of Redis, its main thread included', wholeNumber(1, 128), 1)
      .addOption(
        new Option('--links <list>', 'links to Redis (see npm run load -- store --help)')
          .argParser((text) => links(text).map(({ name }) => name))
          .default(usualLinks, usualLinks.join(',')),
      )
    const variants = ['naive', 'sequential', 'pipeline', 'batch'] as const
    addWorkload(command, { variants, warmup: 0.5, workloads: ['realistic', 'documents'] })
  },
  /** At least a session for each connection. */
  complete(options) {
    const connections = options.connections.toSorted((a, b) => a - b)
    return { ...withWorkload({ ...options, connections: connections.at(-1) ?? 0 }), connections }
  },

  factors: [
    { name: 'series', label: 'series', text: (value) => `by ${value}` },
    { name: 'connections', label: 'HTTP connections' },
    { name: 'workers' },
    { name: 'link' },
    { name: 'variant' },
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
  baseline(one, cases) {
    const { variant, ...place } = one
    return baselineVariant(
      one,
      cases.filter((other) => matches(other, place)),
    )
  },

  async prepare(context, options) {
    const wanted = casesOf(options)
    if (wanted.length === 0) {
      throw new Problem('--workers: what --variants names runs as one process only.')
    }
    const config = { appendonly: 'yes', 'io-threads': String(options.ioThreads) }
    const redis = await context.startRedis({ build: 'patched', config })
    const monitor = await RedisMonitor.connect(redis.url)
    context.defer(() => monitor.close())
    context.describe('software', {
      Generator: packageVersion('autocannon'),
      Clients: clientsOf(options.variants),
    })
    context.describe('load', { 'pool size': apiSettings().poolSize })
    const apis = await startApis(context, redis, wanted)
    const [first] = apis.values()
    const { tokens } = await context.step('Logging users in', () =>
      logIn(first?.url ?? '', options.sessions, context.signal),
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
  async measure(one, { monitor, tokens, apis }, { round, options, context: { signal } }) {
    const api = apis.get(apiKey(one)) as RunningApi
    const load = { ...options, connections: Number(one.connections), tokens }
    const foreign = { apis: false, redis: false }
    const bench = { monitor, foreign, owned: false, calls: () => workload(load) }
    const seconds = round === 0 ? options.warmup : secondsOf(one, options)
    const { values, doubts = [], ...rest } = await saturate(bench, api, { seconds, signal })
    const isCrowded = Number(one.workers) + 1 > availableParallelism()
    return {
      ...rest,
      values: { ...values, pingMs: api.pingMs },
      doubts: isCrowded ? [...doubts, 'crowded'] : doubts,
    }
  },

  sections: (rows) => rows.by('series').map(({ value, rows: own }) => section(String(value), own)),
  claims: (rows) => rows.by('series').map(({ value, rows: own }) => claimOf(String(value), own)),
}

function casesOf({ only, variants, connections, workers, links }: ScalingOptions): Case[] {
  const values = { connections, workers, link: links }
  return only.flatMap((series) =>
    values[series].flatMap((value) => {
      const point = { ...usual, [series]: value }
      const able = variants.filter((variant) => point.workers === 1 || !isContender(variant))
      return able.map((variant) => ({ series, ...point, variant }))
    }),
  )
}

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

const titles: Readonly<Record<string, string>> = {
  connections: 'By HTTP connections',
  workers: 'By workers',
  link: 'By link to Redis',
}

/** @param name of the factor that changes. */
const section = (name: string, rows: Rows): Section =>
  sectionOf(rows, {
    title: titles[name] ?? name,
    charts: chartsOf(rows, RATE, name, { logarithmic: name === 'link' }),
    caption: `${titles[name]}: medians of the rounds`,
    factors: [name, 'variant'],
    columns: [
      ...(name === 'link' ? ['pingMs'] : []),
      range(RATE, rows),
      ratio(RATE, `× ${rows.all[0]?.baseline(rows)?.subject}`),
      ...['p50', 'p99', 'apiCpuMicros', 'redisCpuMicros', errors],
    ],
  })

/** How ours compares with the reference at both ends of a series, as far as their rows have no marks. */
function claimOf(name: string, rows: Rows): string | null {
  const [ours = ''] = ['batch', 'pipeline'].filter((variant) => rows.find({ variant }))
  const times = rows.where({ variant: ours }).all.flatMap((row) => {
    const base = row.baseline(rows)
    const ratio = row.ratio(RATE, base)
    if (!base || !ratio || row.doubts.length > 0 || base.doubts.length > 0) return []
    return `${figure(ratio.mean)} times (${row.text(name)})`
  })
  if (times.length < 2) return null
  const base = rows.all[0]?.baseline(rows)?.subject
  return `${titles[name]}: ${ours} answers ${times[0]} and ${times.at(-1)} as many requests a second as ${base}.`
}
