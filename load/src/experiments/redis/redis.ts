import type { LoadOptions } from '../../drivers/redis/generator/load.ts'
import {
  maxConnections,
  removeNetworkLimits,
  requireConnections,
} from '../../drivers/redis/limits.ts'
import { requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { redisForEach, startFilledRedis } from '../../drivers/redis/servers.ts'
import {
  asCost,
  asLatency,
  asRate,
  type Case,
  type Factor,
  type Measured,
  product,
} from '../../rounds/shape.ts'
import type { Experiment, RoundOptions, Run } from '../experiment.ts'
import { addSettings, MOST, type RedisSettings } from './settings.ts'

export type RedisOptions = RedisSettings & RoundOptions

/**
 * A preset of the experiment `redis`: which options it has, its cases, how to measure one, its tables. Everything else
 * is the same for all: the builds of Redis with their I/O threads and idle connections, the way to them, the metrics.
 */
export interface Preset
  extends Pick<
    Experiment<RedisOptions>,
    'title' | 'summary' | 'about' | 'quick' | 'subject' | 'baseline' | 'progress' | 'sections'
  > {
  /** `redis short` */
  readonly name: string
  /** Default of `--duration`. */
  readonly duration: number
  /** Its options with their defaults; undefined for none. */
  readonly settings: Partial<RedisSettings>
  /** In the order of the columns. Names of `factors`, or factors of its own. */
  readonly factors: readonly (keyof typeof factors | Factor)[]
  readonly doubts?: NonNullable<Experiment['doubts']>
  readonly warmUp?: NonNullable<Experiment['warmUp']>
  /** What the options ask of each Redis. @throws Problem when they do not fit together. */
  server(options: RedisOptions): ServerPlan
  /** The cases for one build and one setting of io-threads. */
  cases(options: RedisOptions): Case[]
  /** Measures one case once. */
  measure(one: Case, on: Measurable, run: Run<RedisOptions>): Promise<Measured>
}

interface ServerPlan {
  /** Concurrent connections, in addition to idle ones. */
  busy: number
  /** Numbers of idle connections, if not those of `--idle`. */
  idle?: number[]
  config?: Record<string, string>
  /** Whether redis-benchmark is needed. */
  benchmark?: boolean
  /** Whether limits of the kernel on short connections are removed, if possible. */
  unlimited?: boolean
  fill?(server: RedisServer, signal: AbortSignal): Promise<unknown>
}

/** The Redis of a case, and the way to it. */
interface Measurable {
  server: RedisServer
  target: LoadOptions['target']
}

interface Bench {
  serverOf: (one: Case) => RedisServer
}

const wayTexts: Readonly<Record<string, string>> = {
  tcp: 'TCP',
  unix: 'Unix socket',
}

const factors = {
  load: { text: (load) => (load === 'long beside short' ? 'long with short' : String(load)) },
  tool: {},
  transport: { label: 'over', text: (by) => wayTexts[by] ?? String(by) },
  idle: { label: 'idle connections' },
  clients: {},
  rate: { label: 'connections/s' },
  leaving: { label: 'clients' },
  departure: { label: 'they leave by' },
  pipeline: {},
  values: { label: 'values per round trip' },
  set: {},
  key: {},
  command: {},
  elements: {},
  client: {},
  connection: {},
  threads: { label: 'I/O threads' },
  build: {},
} satisfies Record<string, Omit<Factor, 'name'>>

const metrics = [
  { name: 'perSecond', label: 'commands/s', ...asRate },
  { name: 'valuesPerSecond', label: 'values/s', ...asRate },
  { name: 'p50', label: 'p50 ms', ...asLatency },
  { name: 'p90', label: 'p90 ms' },
  { name: 'p99', label: 'p99 ms', ...asLatency },
  { name: 'max', label: 'longest ms' },
  { name: 'below1', label: 'below 1 ms', format: 'percent' },
  { name: 'above2', label: 'over 2 ms', format: 'percent' },
  { name: 'executionMicros', label: 'execution µs /command', ...asCost },
  { name: 'mainCpuShare', label: 'main thread CPU, of a core', format: 'percent' },
  { name: 'mainCpuMicros', label: 'main thread CPU µs /command', ...asCost },
  { name: 'cpuMicros', label: 'all threads CPU µs /command', ...asCost },
  { name: 'userMicros', label: 'user CPU µs /command', ...asCost },
  { name: 'kernelMicros', label: 'kernel CPU µs /command', ...asCost },
  { name: 'backgroundCpuMicros', label: 'background CPU µs /command', ...asCost },
  { name: 'systemCalls', label: 'system calls /connection', ...asCost },
  { name: 'networkPerSecond', label: 'network MB/s' },
  { name: 'ceiling', label: 'ceiling values/s' },
  { name: 'redisBusy', label: 'Redis busy', format: 'percent' },
  { name: 'generatorBusy', label: 'generator busy', format: 'percent' },
  { name: 'recoveredAfter', label: 'p99 below 5 ms after s', ...asCost },
  { name: 'refused', label: 'refused connections', format: 'whole' },
  { name: 'repeated', label: 'repeated SYNs', format: 'whole' },
] as const satisfies Experiment['metrics']

/** Options that a preset may lack. */
const defaults = { builds: ['patched'], threads: [1], idle: [0], transports: ['tcp'] } as const

/** The experiment `redis` with a preset. */
export function redisExperiment(preset: Preset): Experiment<RedisOptions, Bench> {
  const planOf = (options: RedisOptions) => preset.server(options)
  return {
    ...preset,
    rounds: 3,
    factors: preset.factors.map((one) =>
      typeof one === 'string' ? { name: one, ...factors[one] } : one,
    ),
    metrics,
    configure: (command) => addSettings(command, preset.settings),
    complete(options) {
      const all = { ...defaults, ...options } as RedisOptions
      const most = all.idle.includes(MOST) ? maxConnections() - planOf(all).busy : 0
      const idle = all.idle.map((count) => (count === MOST ? most : count))
      return { ...all, idle: [...new Set(idle)] }
    },
    isolated: (options) => [
      ...options.builds,
      ...(planOf(options).benchmark ? (['tools'] as const) : []),
    ],

    async prepare(context, options) {
      const plan = planOf(options)
      const { busy, idle = options.idle } = plan
      await requireConnections(Math.max(...idle) + busy)
      if (plan.benchmark) await requireRedisBenchmark(context.signal)
      if (plan.unlimited) {
        const limits = (await removeNetworkLimits(busy)) ? 'none' : 'as usual'
        context.describe('load', { 'TIME_WAIT and backlog': limits })
      }
      const servers = product({ threads: options.threads, idle, build: options.builds })
      const serverOf = await redisForEach(context, servers, async ({ threads, ...one }) => {
        const config = { ...plan.config, 'io-threads': String(threads) }
        const server = await startFilledRedis(context, { ...one, busy, config })
        await plan.fill?.(server, context.signal)
        return server
      })
      return { serverOf }
    },

    cases: (_, options) => {
      const servers = product({ threads: options.threads, build: options.builds })
      return preset.cases(options).flatMap((one) => servers.map((of) => ({ ...one, ...of })))
    },

    async measure(one, { serverOf }, run) {
      const server = serverOf({ idle: 0, ...one })
      const { port, socket } = server
      const target = one.transport === 'unix' ? { socket } : { port }
      return await preset.measure(one, { server, target }, run)
    },
  }
}
