import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseRedisUrl } from '@onetrip/session-store'
import {
  hideCredentials,
  requireOwnHost,
  runningRedis,
  type Transport,
  urlFor,
} from '@onetrip/stack/address.ts'
import { infoOf } from '@onetrip/stack/measure/usage.ts'
import type { Call } from '@onetrip/stack/measure/workload.ts'
import { newSecret, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { type StackOptions, startStack } from '@onetrip/stack/stack.ts'
import { buildRedis, type RedisBuild } from '@onetrip/stack/start-redis.ts'
import { print } from '@onetrip/stack/terminal.ts'
import type { Context } from '../../experiments/experiment.ts'
import { type Variant, variantProgram, variants } from '../../variants.ts'
import { type LinkPlan, links, openLink } from '../redis/links.ts'

/** The options that determine the APIs to measure. */
export interface TargetOptions {
  variants: Variant[]
  /** Default: patched. */
  redisBuild?: RedisBuild[]
  /** Default: TCP. */
  transport?: Transport
  /** Ways to a Redis that is started. There are APIs for each of them. Default: by `transport`. */
  links?: LinkPlan[]
  /** 1: off. Default: `REDIS_IO_THREADS`, else half of the cores, from 2 to 4. */
  ioThreads?: number[]
  /** Running APIs to measure, instead of those of a new stack. */
  url?: string[]
  iOwnThisHost?: boolean
}

/** An API to measure, and its Redis. */
export interface Target {
  readonly variant: Variant
  /** The name of its link to Redis; the transport for a Redis that was not started. */
  readonly link: string
  readonly build: string
  /** 0: unknown. */
  readonly ioThreads: number
  /** Version and build. */
  readonly redis: string
  readonly monitor: RedisMonitor
  /** Whether these programs were started by another process. */
  readonly foreign: { readonly apis: boolean; readonly redis: boolean }
  /** Starts the API, if it is ours. */
  start(): Promise<{ url: string; stop(): Promise<void> }>
}

/** A running API. */
export interface Api extends Omit<Target, 'start'> {
  readonly url: string
  /** Whether the user gave `--i-own-this-host`. */
  readonly owned: boolean
  /** A list of calls for each connection. The connection repeats its list. Default: `options.connections`. */
  calls(connections?: number): Call[][]
}

/**
 * Finds the APIs given by `--url`, else starts the Redis servers for a new stack, which are stopped at the end.
 *
 * @throws Problem, ProgramError; the reason of the signal.
 */
export async function findTargets(context: Context, options: TargetOptions): Promise<Target[]> {
  const url = runningRedis()
  const owned = options.iOwnThisHost === true
  if (url) requireOwnHost(url, owned)
  return options.url
    ? await givenTargets(context, { urls: options.url, redis: url, owned })
    : await ownTargets(context, options, url)
}

async function ownTargets(
  context: Context,
  options: TargetOptions,
  url: string | undefined,
): Promise<Target[]> {
  const { redisBuild, transport = 'tcp', ioThreads, variants } = options
  const { REDIS_SERVER: installed } = process.env
  if (url && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set. Unset one of them.')
  }
  if (
    (redisBuild && (url || installed)) ||
    ((options.transport || options.links || ioThreads) && url)
  ) {
    throw new Problem(
      '--redis-build, --transport, --links and --io-threads have no effect with REDIS_URL; --redis-build has no effect with REDIS_SERVER.',
    )
  }
  const poolSize = Number(process.env.REDIS_POOL_SIZE ?? '1') // the API rejects an invalid value
  context.describe('load', { 'pool size': poolSize })
  const common = {
    host: '127.0.0.1',
    sessionSecret: newSecret(),
    env: {
      REDIS_POOL_SIZE: String(poolSize),
      JANITOR_INTERVAL_SECONDS: '0',
      MAX_SESSIONS: '10000000', // the default: without a janitor, the API refuses another value
    },
    signal: context.signal,
  }
  const start = async (parts: Pick<StackOptions, 'redis' | 'apis'>) => {
    const stack = await startStack({ ...common, ...parts })
    void stack.lost.then(async (program) => context.fail(await endOf(program)))
    return stack
  }
  /** The APIs that reach a Redis by this address. */
  const apisAt = async (redis: string, of: Omit<Target, 'variant' | 'start'>) => {
    const ports = await freePorts(variants.length)
    return variants.map((variant, index): Target => {
      const apis = [{ ...variantProgram(variant), port: ports[index] ?? 0 }]
      return {
        ...of,
        variant,
        async start() {
          const stack = await start({ redis: { kind: 'foreign', url: redis }, apis })
          return { url: stack.apis[0]?.url ?? '', stop: () => stack.stop() }
        },
      }
    })
  }
  if (url) return await apisAt(url, await monitored(context, url, { apis: false, redis: true }))
  const run = await temporaryRunFolder('load-')
  context.defer(() => rm(run, { recursive: true, force: true }))
  const secrets = join(run, 'secrets')
  const found: Target[] = []
  for (const build of redisBuild ?? (['patched'] as const)) {
    if (!installed) await buildRedis(build, context.signal)
    for (const threads of ioThreads ?? [undefined]) {
      const [port = 0] = await freePorts(1)
      const folder = join(run, String(port))
      const config = threads && { config: { 'io-threads': String(threads) } }
      const own = { build, transport, port, run: folder, directory: join(folder, 'data'), secrets }
      const name = `Redis (${build})`
      const stack = await context.step(`Starting ${name}`, () =>
        start({ redis: { kind: 'own', ...own, ...config }, apis: [] }),
      )
      context.defer(() => context.step(`Stopping ${name}`, () => stack.stop()))
      const { socket, url: operator } = stack.redis
      const redis = await monitored(context, operator, { apis: false, redis: false })
      for (const plan of options.links ?? links(transport === 'unix' ? 'unix' : 'loopback')) {
        const link = await openLink(plan, { port, socket: socket ?? '' }, context)
        const address = installed ? link.url : urlFor('api', link.url, secrets)
        found.push(...(await apisAt(address, { ...redis, build, link: plan.name })))
      }
    }
  }
  return found
}

/**
 * The running APIs given by `--url`, for instance in containers or on another machine. They report their variants.
 * Their Redis is `REDIS_URL`.
 *
 * @throws Problem when a host is not allowed, an API does not answer, or the URL is not one of our APIs.
 */
async function givenTargets(
  context: Context,
  { urls, redis, owned }: { urls: readonly string[]; redis: string | undefined; owned: boolean },
): Promise<Target[]> {
  if (redis === undefined) {
    throw new Problem(
      '--url needs REDIS_URL, the address of the Redis of these APIs, because Redis is measured, too.',
    )
  }
  const found: { variant: Variant; url: string; poolSize: number | null }[] = []
  for (const url of urls) {
    requireOwnHost(url, owned)
    const { strategy, poolSize } = await infoOf(url)
    const variant = variants.find((known) => known === strategy)
    if (!variant) throw new Problem(`The API at ${url} reports an unknown variant: ${strategy}.`)
    if (found.some((one) => one.variant === variant)) {
      throw new Problem(`--url has two APIs of the variant ${variant}. Give one URL per variant.`)
    }
    found.push({ url, variant, poolSize })
  }
  context.describe('load', { 'pool size': found.map(({ poolSize }) => poolSize ?? '?').join(', ') })
  print(`Measuring ${found.map(({ variant, url }) => `${variant} at ${url}`).join(', ')}.`)
  const of = await monitored(context, redis, { apis: true, redis: true })
  return found.map(({ variant, url }) => ({
    ...of,
    variant,
    start: async () => ({ url, stop: async () => {} }),
  }))
}

/** A monitored Redis. If it is foreign and closes the connection, the measurement ends. */
async function monitored(context: Context, url: string, foreign: Target['foreign']) {
  const { transport } = parseRedisUrl(url)
  const monitor = await RedisMonitor.connect(url)
  context.defer(() => monitor.close())
  if (foreign.redis) {
    const lost = new Problem(
      `Redis at ${hideCredentials(url)} has stopped: it closed the connection.`,
    )
    void monitor.lost.then(() => context.fail(lost))
  }
  const { version, build, ioThreads } = await monitor.facts()
  const name = build ?? (foreign.redis ? 'foreign' : 'installed')
  const redis = `${version} ${name}`
  return { link: transport, build: name, ioThreads: ioThreads ?? 0, redis, monitor, foreign }
}
