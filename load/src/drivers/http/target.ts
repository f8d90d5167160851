import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseRedisUrl } from '@onetrip/session-store'
import { requireOwnHost, runningRedis, type Transport, urlFor } from '@onetrip/stack/address.ts'
import { type ApiInfo, infoOf } from '@onetrip/stack/measure/usage.ts'
import { newSecret, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { buildRedis, type RedisBuild } from '@onetrip/stack/redis.ts'
import { type StackOptions, startStack } from '@onetrip/stack/stack.ts'
import { print } from '@onetrip/stack/terminal.ts'
import type { Context } from '../../experiment/experiment.ts'
import { type Variant, variantProgram, variants } from '../../variants.ts'
import { type LinkPlan, links, openLink } from '../redis/links.ts'

/** The options that determine the APIs to measure. */
export interface TargetOptions {
  variants: Variant[]
  /** Default: patched. */
  redisBuild?: RedisBuild
  /** Default: TCP. */
  transport?: Transport
  /** Ways to a Redis that is started. There are APIs for each of them. Default: by `transport`. */
  links?: LinkPlan[]
  /** 1: off. Default: `REDIS_IO_THREADS`, else half of the cores, from 2 to 4. */
  ioThreads?: number
  /** Running APIs to measure, instead of those of a new stack. */
  url?: string[]
  iOwnThisHost?: boolean
}

export interface Api {
  variant: Variant
  /** The name of its link to Redis; the transport for a Redis that was not started. */
  link: string
  url: string
}

/** The measured stack. Its APIs are in the order of the options. */
interface Target {
  kind: '--url' | 'started for this'
  redis: { url: string; build: string }
  apis: Api[]
}

/**
 * Finds the APIs given by `--url`, else starts a stack and stops it at the end.
 *
 * @throws Problem, ProgramError; the reason of the signal.
 */
export const findTarget = (context: Context, options: TargetOptions): Promise<Target> =>
  options.url
    ? givenTarget(context, options.url, options.iOwnThisHost === true)
    : ownTarget(context, options)

async function ownTarget(context: Context, options: TargetOptions): Promise<Target> {
  const { redisBuild, transport, ioThreads, variants } = options
  const { REDIS_SERVER: installed } = process.env
  const url = runningRedis()
  if (url && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set. Unset one of them.')
  }
  if ((redisBuild && (url || installed)) || ((transport || options.links || ioThreads) && url)) {
    throw new Problem(
      '--redis-build, --transport, --links and --io-threads have no effect with REDIS_URL; --redis-build has no effect with REDIS_SERVER.',
    )
  }
  if (url) requireOwnHost(url, options.iOwnThisHost === true)
  const poolSize = Number(process.env.REDIS_POOL_SIZE ?? '1') // the API rejects an invalid value
  context.describe('load', { 'pool size': poolSize })
  const build = redisBuild ?? 'patched'
  if (!url && !installed) await buildRedis(build, context.signal)
  const run = await temporaryRunFolder('load-')
  context.defer(() => rm(run, { recursive: true, force: true }))
  const secrets = join(run, 'secrets')
  const [port = 0] = await freePorts(1)
  const config = ioThreads && { config: { 'io-threads': String(ioThreads) } }
  const own = { build, transport: transport ?? 'tcp', port, run, directory: join(run, 'data') }
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
  const start = async (name: string, parts: Pick<StackOptions, 'redis' | 'apis'>) => {
    const stack = await context.step(`Starting ${name}`, () => startStack({ ...common, ...parts }))
    context.defer(() => context.step(`Stopping ${name}`, () => stack.stop()))
    void stack.lost.then(async (program) => context.fail(await endOf(program)))
    return stack
  }
  const { redis } = await start('Redis', {
    redis: url ? { kind: 'foreign', url } : { kind: 'own', ...own, secrets, ...config },
    apis: [],
  })
  const startApis = async (link: string, address: string): Promise<Api[]> => {
    const ports = await freePorts(variants.length)
    const stack = await start(`the APIs (${link})`, {
      redis: { kind: 'foreign', url: address },
      apis: variants.map((name, index) => ({ ...variantProgram(name), port: ports[index] ?? 0 })),
    })
    return stack.apis.map((api, index) => ({
      url: api.url,
      link,
      variant: variants[index] as Variant,
    }))
  }
  if (url) {
    return { kind: 'started for this', redis, apis: await startApis(redis.transport, url) }
  }
  const plans = options.links ?? links(own.transport === 'unix' ? 'unix' : 'loopback')
  const apis = await Array.fromAsync(plans, async (plan) => {
    const link = await openLink(plan, { port, socket: redis.socket ?? '' }, context)
    const address = installed ? link.url : urlFor('api', link.url, secrets)
    return await startApis(plan.name, address)
  })
  return { kind: 'started for this', redis, apis: apis.flat() }
}

/**
 * The running APIs given by `--url`, for instance in containers or on another machine. They report their variants.
 * Their Redis is `REDIS_URL`.
 *
 * @param owned whether other hosts than this machine are allowed.
 * @throws Problem when a host is not allowed, an API does not answer, or the URL is not one of our APIs.
 */
async function givenTarget(
  context: Context,
  urls: readonly string[],
  owned: boolean,
): Promise<Target> {
  const redisUrl = runningRedis()
  if (redisUrl === undefined) {
    throw new Problem(
      '--url needs REDIS_URL, the address of the Redis of these APIs, because Redis is measured, too.',
    )
  }
  const { transport } = parseRedisUrl(redisUrl)
  for (const url of [redisUrl, ...urls]) requireOwnHost(url, owned)
  const apis: Target['apis'] = []
  const infos: ApiInfo[] = []
  for (const url of urls) {
    const info = await infoOf(url)
    const { strategy } = info
    infos.push(info)
    const variant = variants.find((known) => known === strategy)
    if (!variant) throw new Problem(`The API at ${url} reports an unknown variant: ${strategy}.`)
    if (apis.some((api) => api.variant === variant)) {
      throw new Problem(`--url has two APIs of the variant ${variant}. Give one URL per variant.`)
    }
    apis.push({ url, variant, link: transport })
  }
  context.describe('load', { 'pool size': infos.map(({ poolSize }) => poolSize ?? '?').join(', ') })
  print(`Measuring ${apis.map((api) => `${api.variant} at ${api.url}`).join(', ')}.`)
  return { kind: '--url', redis: { url: redisUrl, build: 'foreign' }, apis }
}
