import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  redisAddress,
  redisOfEnvironment,
  requireOwnHost,
  type Transport,
} from '@onetrip/stack/address.ts'
import { apiSettings } from '@onetrip/stack/api.ts'
import { newSecret, places, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { runningStack, type StackRecord } from '@onetrip/stack/record.ts'
import { buildRedis, type RedisBuild } from '@onetrip/stack/redis.ts'
import { redisFacts } from '@onetrip/stack/redis-info.ts'
import { startStack } from '@onetrip/stack/stack.ts'
import { print } from '@onetrip/stack/terminal.ts'
import type { Context } from '../../experiment/experiment.ts'
import { strategyOf } from '../../measure/api-metrics.ts'
import { isContender, type Variant, variantProgram, variants } from '../../variants.ts'

/** What decides which stack is measured. */
export interface TargetOptions {
  variants: Variant[]
  /** Given only if the user wants this build, whatever runs already. */
  redisBuild?: RedisBuild
  /** Likewise. */
  transport?: Transport
  /** Likewise: processes of each API. */
  workers?: number
  /** APIs of a running stack, instead of one that npm start runs or this starts. */
  url?: string[]
  iOwnThisHost?: boolean
}

export interface Api {
  variant: Variant
  url: string
}

/** The stack that is measured. */
export interface Target {
  kind: 'npm start' | '--url' | 'started for this'
  redis: { url: string; transport: Transport; build: string }
  /** In the order of the wanted variants. */
  apis: Api[]
  /** Connections that each API's pool has, and its processes; unknown for a stack that runs already. */
  poolSize?: number
  workers?: number
}

/**
 * Finds the stack that the user names, or the one that `npm start` runs if it fits, or else starts one until
 * the end of the measurement, and prints which.
 *
 * @throws Problem, ProgramError; the reason of the signal.
 */
export async function findTarget(context: Context, options: TargetOptions): Promise<Target> {
  if (options.url) return await givenTarget(options.url, options.iOwnThisHost === true)
  const record = await runningStack(places().record)
  const misfit = record ? await misfitOf(record, options) : 'Nothing is running'
  if (record && misfit === null) {
    print(`Measuring what npm start runs (process ${record.pid}).`)
    const apis = options.variants.flatMap((variant) => {
      const api = record.apis.find((api) => api.variant === variant)
      return api ? [{ variant, url: api.url }] : []
    })
    return { kind: 'npm start', redis: record.redis, apis }
  }
  print(`${misfit}: starting a stack for this comparison, to be removed afterwards.`)
  return await ownTarget(context, options)
}

/** Why a running stack cannot be used, as the beginning of a sentence; null when it can. */
async function misfitOf(record: StackRecord, options: TargetOptions): Promise<string | null> {
  const { redis, apis } = record
  const { redisBuild, transport, workers } = options
  for (const { url } of [redis, ...apis]) requireOwnHost(url, options.iOwnThisHost === true)
  if (workers !== undefined) return 'The number of workers of the running stack is unknown'
  if (redisBuild && redisBuild !== redis.build) {
    return `The running stack has Redis ${redis.build}, not ${redisBuild}`
  }
  if (transport && transport !== redis.transport) {
    return `The running stack reaches Redis by ${redis.transport}, not by ${transport}`
  }
  for (const variant of options.variants) {
    const api = apis.find((api) => api.variant === variant)
    if (!api) return `The running stack has no ${variant} API`
    const strategy = await strategyOf(api.url)
    if (strategy !== variant) return `At ${api.url} there is another API, ${strategy}`
  }
  return null
}

async function ownTarget(context: Context, options: TargetOptions): Promise<Target> {
  const url = await redisOfEnvironment()
  const { REDIS_SERVER: installed } = process.env
  const { redisBuild: build = 'patched', transport = 'tcp', variants } = options
  const settings = apiSettings()
  const workers = options.workers ?? settings.workers
  refuseWrongSettings(options, url, workers)
  if (!url && !installed) await buildRedis(build, context.signal)
  const folder = await temporaryRunFolder('load-')
  context.defer(() => rm(folder, { recursive: true, force: true }))
  const [port = 0, ...apiPorts] = await freePorts(1 + variants.length)
  const directories = { directory: join(folder, 'data'), secrets: join(folder, 'secrets') }
  const stack = await context.step('Starting Redis and the APIs', () =>
    startStack({
      redis: url
        ? { kind: 'foreign', url }
        : { kind: 'own', build, transport, port, run: folder, ...directories },
      host: '127.0.0.1',
      apis: variants.map((variant, index) => ({
        ...variantProgram(variant),
        port: apiPorts[index] ?? 0,
      })),
      sessionSecret: newSecret(),
      env: {
        WORKERS: String(workers),
        REDIS_POOL_SIZE: String(settings.poolSize),
        JANITOR_INTERVAL_SECONDS: '0',
      },
      signal: context.signal,
    }),
  )
  context.defer(() => context.step('Stopping the stack of this comparison', () => stack.stop()))
  void stack.lost.then(async (program) => context.fail(await endOf(program)))
  return {
    kind: 'started for this',
    redis: stack.redis,
    apis: stack.apis.map(({ url }, index) => ({ url, variant: variants[index] as Variant })),
    ...{ workers, poolSize: settings.poolSize },
  }
}

/** @throws Problem for settings that contradict each other. */
function refuseWrongSettings(
  options: TargetOptions,
  url: string | undefined,
  workers: number,
): void {
  const { redisBuild, transport, variants } = options
  const installed = process.env.REDIS_SERVER
  const single = variants.find(isContender)
  if (workers > 1 && single !== undefined) {
    const setting = options.workers === undefined ? 'WORKERS' : '--workers'
    throw new Problem(`${setting}: ${single} runs as one process only, not as ${workers}.`)
  }
  if (url && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set; only one Redis can be used.')
  }
  if (redisBuild && (url || installed)) {
    const name = url ? 'REDIS_URL' : 'REDIS_SERVER'
    throw new Problem(`--redis-build asks for a build of ours, but ${name} is set.`)
  }
  if (url) requireOwnHost(url, options.iOwnThisHost === true)
  if (url && transport && redisAddress(url).transport !== transport) {
    throw new Problem(`--transport ${transport} does not fit REDIS_URL.`)
  }
}

/**
 * The stack whose APIs the user names (`--url`): in containers, on another machine. They report their own
 * variants. Its Redis is `REDIS_URL`.
 *
 * @param owned whether the user says that these hosts are theirs, if they are not this machine.
 * @throws Problem when an address is not to be used, does not answer, or is none of ours.
 */
async function givenTarget(urls: readonly string[], owned: boolean): Promise<Target> {
  const redisUrl = await redisOfEnvironment()
  if (redisUrl === undefined) {
    throw new Problem('--url needs REDIS_URL, the Redis of these APIs, which is measured, too.')
  }
  const { transport } = redisAddress(redisUrl)
  for (const url of [redisUrl, ...urls]) requireOwnHost(url, owned)
  const apis = await Promise.all(urls.map(async (url) => ({ url, variant: await variantAt(url) })))
  for (const [variant, { length }] of Map.groupBy(apis, (api) => api.variant)) {
    if (length > 1) throw new Problem(`--url names two APIs of the variant ${variant}.`)
  }
  const { build } = await redisFacts(redisUrl)
  print(`Measuring ${apis.map((api) => `${api.variant} at ${api.url}`).join(', ')}.`)
  return { kind: '--url', redis: { url: redisUrl, transport, build: build ?? 'foreign' }, apis }
}

async function variantAt(url: string): Promise<Variant> {
  const strategy = await strategyOf(url)
  const variant = variants.find((known) => known === strategy)
  if (variant) return variant
  throw new Problem(`The API at ${url} is ${strategy}, which is not a known variant.`)
}
