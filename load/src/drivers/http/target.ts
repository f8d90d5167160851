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
import { strategyOf } from '../../measure/usage.ts'
import { isContender, type Variant, variantProgram, variants } from '../../variants.ts'

/** What decides which stack is measured. */
export interface TargetOptions {
  variants: Variant[]
  /** Given only if the user wants this build, whatever runs already; likewise the next two. */
  redisBuild?: RedisBuild
  transport?: Transport
  /** Processes of each API. */
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
  const misfit = record ? misfitOf(record, options) : 'Nothing is running'
  if (!record || misfit) {
    print(`${misfit}: starting a stack for this comparison, to be removed afterwards.`)
    return await ownTarget(context, options)
  }
  for (const { url } of [record.redis, ...record.apis]) {
    requireOwnHost(url, options.iOwnThisHost === true)
  }
  print(`Measuring what npm start runs (process ${record.pid}).`)
  const { redis, apis } = record
  const urlOf = (variant: Variant) => apis.find((api) => api.variant === variant)?.url ?? ''
  const wanted = options.variants.map((variant) => ({ variant, url: urlOf(variant) }))
  return { kind: 'npm start', redis, apis: wanted }
}

/** Why a running stack cannot be used, as the beginning of a sentence; undefined when it can. */
function misfitOf({ redis, apis }: StackRecord, options: TargetOptions): string | undefined {
  const { redisBuild = redis.build, transport = redis.transport, workers } = options
  const missing = options.variants.find((name) => !apis.some(({ variant }) => variant === name))
  if (missing) return `The running stack has no ${missing} API`
  if (workers !== undefined) return 'The number of workers of the running stack is unknown'
  if (redisBuild === redis.build && transport === redis.transport) return undefined
  return `The running stack has Redis ${redis.build} over ${redis.transport}`
}

async function ownTarget(context: Context, options: TargetOptions): Promise<Target> {
  const { redisBuild: build = 'patched', variants } = options
  const url = await redisOfEnvironment()
  const { poolSize, ...settings } = apiSettings()
  const workers = options.workers ?? settings.workers
  const single = variants.find(isContender)
  if (workers > 1 && single) {
    throw new Problem(
      `--workers or WORKERS: ${single} runs as one process only, not as ${workers}.`,
    )
  }
  const transport = transportTo(url, options)
  if (!url && !process.env.REDIS_SERVER) await buildRedis(build, context.signal)
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
        REDIS_POOL_SIZE: String(poolSize),
        JANITOR_INTERVAL_SECONDS: '0',
      },
      signal: context.signal,
    }),
  )
  context.defer(() => context.step('Stopping the stack of this comparison', () => stack.stop()))
  void stack.lost.then(async (program) => context.fail(await endOf(program)))
  const apis = stack.apis.map(({ url }, index) => ({ url, variant: variants[index] as Variant }))
  return { kind: 'started for this', redis: stack.redis, apis, workers, poolSize }
}

/** @throws Problem for settings that contradict each other. */
function transportTo(url: string | undefined, options: TargetOptions): Transport {
  const installed = process.env.REDIS_SERVER
  if (url && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set; only one Redis can be used.')
  }
  if (options.redisBuild && (url || installed)) {
    const name = url ? 'REDIS_URL' : 'REDIS_SERVER'
    throw new Problem(`--redis-build asks for a build of ours, but ${name} is set.`)
  }
  if (!url) return options.transport ?? 'tcp'
  requireOwnHost(url, options.iOwnThisHost === true)
  const { transport } = redisAddress(url)
  if ((options.transport ?? transport) === transport) return transport
  throw new Problem(`--transport ${options.transport} does not fit REDIS_URL.`)
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
  const apis: Api[] = []
  for (const url of urls) {
    const strategy = await strategyOf(url)
    const variant = variants.find((known) => known === strategy)
    if (!variant || apis.some((api) => api.variant === variant)) {
      throw new Problem(
        `The API at ${url} is ${strategy}: ${variant ? 'there is another of it' : 'not a known variant'}.`,
      )
    }
    apis.push({ url, variant })
  }
  const { build } = await redisFacts(redisUrl)
  print(`Measuring ${apis.map((api) => `${api.variant} at ${api.url}`).join(', ')}.`)
  return { kind: '--url', redis: { url: redisUrl, transport, build: build ?? 'foreign' }, apis }
}
