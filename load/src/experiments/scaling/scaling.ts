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
import { addWorkload, type WorkloadFlags, withWorkload } from '../../drivers/http/shared-options.ts'
import { links } from '../../drivers/redis/links.ts'
import { namesOption, numbersOption } from '../../drivers/redis/options.ts'
import type { Experiment, RoundOptions } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { matches, type Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import type { Case } from '../../experiment/shape.ts'
import { packageVersion } from '../../measure/machine.ts'
import { errors, range, ratio, sectionOf } from '../../reporting/columns.ts'
import { clientsOf, isContender } from '../../variants.ts'
import { apiKey, linkOf, type RunningApi, startApis } from './apis.ts'

/** The factors that the experiment varies, one at a time. */
const series = ['connections', 'workers', 'link'] as const
type Series = (typeof series)[number]

interface ScalingOptions extends Omit<WorkloadFlags, 'connections' | 'url'> {
  only: Series[]
  connections: number[]
  workers: number[]
  ioThreads: number
  /** Names of links, see `links` in links.ts. */
  links: string[]
}

interface Bench {
  monitor: RedisMonitor
  tokens: readonly string[]
  /** By `apiKey`. */
  apis: ReadonlyMap<string, RunningApi>
}

/** The values of the factors that are not varied. */
const usual = { connections: 64, workers: 1, link: 'loopback' }

const usualLinks = ['unix', 'loopback', 'switch', '1ms@1Gb/s', 'vpn']
const RATE = 'requestsPerSecond'

/** Compares the variants over HTTP by connections, workers, and link to Redis. */
export const scaling: Experiment<ScalingOptions, Bench> = {
  name: 'scaling',
  title: 'Scaling: connections, workers, distance to Redis',
  summary: 'compare the variants by connections, workers, and distance to Redis',
  group: 'Over HTTP',
  about: `
Full speed, like npm run load -- http. One factor varies, the others keep their defaults: ${usual.connections} connections, one
worker, Redis at 127.0.0.1.
  connections   concurrent HTTP connections, 1 to 1,000. With 500 or more, a run takes at least 3 s
  workers       processes of the API. Rows with fewer cores than workers and generator are marked, and do not
                predict results of larger machines. Only strategies of the store can have several workers
  link          to Redis: Unix socket, loopback, and through a relay with 0.271 ms (a switch), 1 ms, and 48 ms
                at 1.8 Mb/s (a VPN). With 10 ms or more, a run takes at least 6 s

The command starts its own Redis, APIs and relays, and stops them at the end.

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
  configure(command) {
    const connections = [1, 4, 16, 64, 256, 1_000]
    const text = 'concurrent HTTP connections'
    command
      .addOption(namesOption('--only <list>', series))
      .addOption(numbersOption('--connections <list>', text, [1, 10_000], connections))
      .addOption(numbersOption('--workers <list>', 'processes of the API', [1, 64], [1, 2]))
      .option(
        '--io-threads <n>',
        "Redis's threads, including the main thread",
        wholeNumber(1, 128),
        1,
      )
      .addOption(
        new Option('--links <list>', 'links to Redis (see npm run load -- store --help)')
          .argParser((text) => links(text).map(({ name }) => name))
          .default(usualLinks, usualLinks.join(',')),
      )
    const variants = ['naive', 'sequential', 'pipeline', 'batch'] as const
    addWorkload(command, { variants, warmup: 0.5, workloads: ['realistic', 'articles'] })
  },
  /** Ensures at least one session per connection. */
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
  metrics: [...saturationMetrics, { name: 'pingMs', label: 'PING ms' }],
  progress: [RATE, 'p99'],
  doubts: {
    ...saturationDoubts,
    crowded: {
      mark: '‡',
      text: 'The workers and the generator are more processes than there are cores, so they compete for CPU time.',
      keepsRatios: true,
    },
  },
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
      throw new Problem('--workers: all variants in --variants run as one process only.')
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
  /** One case per API, except those over far links, whose warm-up would end before the first answer. */
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

/** Whether a round trip takes so long that a run of the usual length would end before the first answer. */
const isFar = ({ link }: Case) => (linkOf(link).distant?.roundTripMs ?? 0) >= FAR_MS

/** With this number of connections, a run of the usual length has only one or two answers for each of them. */
const MANY = 500
const [MANY_SECONDS, FAR_SECONDS] = [3, 6]

/** The length of a run in seconds. */
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
    caption: `${titles[name]}: medians of the rounds`,
    factors: [name, 'variant'],
    columns: [
      ...(name === 'link' ? ['pingMs'] : []),
      range(RATE, rows),
      ratio(RATE, `× ${rows.all[0]?.baseline(rows)?.subject}`),
      ...['p50', 'p99', 'apiCpuMicros', 'redisCpuMicros', errors],
    ],
  })

/** The ratio of our best variant to the baseline at both ends of a series, without marked rows. */
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
