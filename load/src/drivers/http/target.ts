import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  hideCredentials,
  isLocal,
  redisAddress,
  redisOfEnvironment,
  requireOwnHost,
  type Transport,
} from '@onetrip/stack/address.ts'
import { apiSettings } from '@onetrip/stack/api.ts'
import { newSecret, places, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import type { Program } from '@onetrip/stack/program.ts'
import { runningStack, type StackRecord } from '@onetrip/stack/record.ts'
import type { RedisBuild } from '@onetrip/stack/redis.ts'
import { buildRedis } from '@onetrip/stack/redis.ts'
import { redisFacts } from '@onetrip/stack/redis-info.ts'
import { startStack } from '@onetrip/stack/stack.ts'
import { print, step } from '@onetrip/stack/terminal.ts'
import type { Variant } from '../../contenders.ts'
import { isContender, variantProgram, variants } from '../../contenders.ts'
import { apiFacts } from '../../measure/api-metrics.ts'

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

/** The stack that is measured. */
export interface Target {
  /** Run by `npm start`, named by the user (`--url`), or started for this. */
  kind: 'running' | 'given' | 'own'
  redis: { url: string; transport: Transport; build: string }
  /** Connections that each API's pool has; null for a running stack, which does not tell. */
  poolSize: number | null
  /** Processes of each API; null for a running stack, which does not tell. */
  workers: number | null
  /** In the order of the wanted variants. */
  apis: { variant: Variant; url: string }[]
  /** Resolves when a program of an own stack ended by itself; else never. */
  lost: Promise<Program>
  /** Stops an own stack and removes its files; leaves a running one alone. */
  close(): Promise<void>
}

/**
 * Takes the stack that the user names, or the one that `npm start` runs if it fits, or else starts
 * one, and says which.
 *
 * @throws Problem, ProgramError; the reason of `signal`. Nothing is left behind then.
 */
export async function findTarget(options: TargetOptions, signal: AbortSignal): Promise<Target> {
  if (options.url) return await givenTarget(options.url, options.iOwnThisHost === true)
  const record = await runningStack(places().record)
  const misfit = record ? await misfitOf(record, options) : 'Nothing is running'
  if (record && misfit === null) {
    const { url, transport, build } = record.redis
    print(`Measuring what npm start runs (process ${record.pid}).`)
    return {
      kind: 'running',
      redis: { url, transport, build },
      poolSize: null,
      workers: null,
      apis: options.variants.flatMap((variant) => {
        const api = record.apis.find((api) => api.variant === variant)
        return api ? [{ variant, url: api.url }] : []
      }),
      lost: new Promise(() => {}),
      close: async () => {},
    }
  }
  print(`${misfit}: starting a stack for this comparison, to be removed afterwards.`)
  return await ownTarget(options, signal)
}

/** Why a running stack cannot be used, as the beginning of a sentence; null when it can. */
async function misfitOf(record: StackRecord, options: TargetOptions): Promise<string | null> {
  const { redis, apis } = record
  for (const url of [redis.url, ...apis.map(({ url }) => url)]) {
    if (!isLocal(url)) {
      throw new Problem(
        `The running stack uses ${hideCredentials(url)}; load only goes to this machine.`,
      )
    }
  }
  const { redisBuild, transport, workers } = options
  if (workers !== undefined) return 'How many workers the running stack has, it does not tell'
  if (redisBuild && redisBuild !== redis.build) {
    return `The running stack has Redis ${redis.build}, not ${redisBuild}`
  }
  if (transport && transport !== redis.transport) {
    return `The running stack reaches Redis by ${redis.transport}, not by ${transport}`
  }
  for (const variant of options.variants) {
    const api = apis.find((api) => api.variant === variant)
    if (!api) return `The running stack has no ${variant} API`
    const { strategy } = await apiFacts(api.url)
    if (strategy !== variant) return `At ${api.url} there is another API, ${strategy}`
  }
  return null
}

async function ownTarget(options: TargetOptions, signal: AbortSignal): Promise<Target> {
  const foreign = await redisOfEnvironment()
  const { REDIS_SERVER: installed } = process.env
  const { redisBuild, transport = 'tcp', variants } = options
  const settings = apiSettings()
  const workers = options.workers ?? settings.workers
  const single = variants.find(isContender)
  if (workers > 1 && single !== undefined) {
    const asked = options.workers === undefined ? 'WORKERS' : '--workers'
    throw new Problem(`${asked}: ${single} runs as one process only, not as ${workers}.`)
  }
  if (foreign && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set; only one Redis can be used.')
  }
  if (redisBuild && (foreign || installed)) {
    const name = foreign ? 'REDIS_URL' : 'REDIS_SERVER'
    throw new Problem(`--redis-build asks for a build of ours, but ${name} is set.`)
  }
  if (foreign && !isLocal(foreign)) {
    throw new Problem(
      `REDIS_URL is ${hideCredentials(foreign)}; load only goes to this machine. Unset it to have a Redis started.`,
    )
  }
  if (foreign && options.transport && redisAddress(foreign).transport !== options.transport) {
    throw new Problem(`--transport ${options.transport} does not fit REDIS_URL.`)
  }
  const build = redisBuild ?? 'patched'
  if (!foreign && !installed) await buildRedis(build, signal)

  const folder = await temporaryRunFolder('load-')
  const removeFolder = () => rm(folder, { recursive: true, force: true })
  try {
    const [redisPort = 0, ...apiPorts] = await freePorts(1 + options.variants.length)
    const stack = await step('Starting Redis and the APIs', () =>
      startStack({
        redis: foreign
          ? { kind: 'foreign', url: foreign }
          : {
              kind: 'own',
              build,
              transport,
              port: redisPort,
              run: folder,
              directory: join(folder, 'data'),
              secrets: join(folder, 'secrets'),
            },
        host: '127.0.0.1',
        apis: options.variants.map((variant, index) => ({
          ...variantProgram(variant),
          port: apiPorts[index] ?? 0,
        })),
        sessionSecret: newSecret(),
        env: {
          WORKERS: String(workers),
          REDIS_POOL_SIZE: String(settings.poolSize),
          JANITOR_INTERVAL_SECONDS: '0',
        },
        signal,
      }),
    )
    return {
      kind: 'own',
      redis: stack.redis,
      ...{ workers, poolSize: settings.poolSize },
      apis: stack.apis.map((api, index) => ({
        ...api,
        variant: options.variants[index] as Variant,
      })),
      lost: stack.lost,
      async close() {
        await stack.stop()
        await removeFolder()
      },
    }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

/**
 * The stack whose APIs the user names (`--url`): in containers, on another machine. What they are,
 * they say themselves. Its Redis is `REDIS_URL`.
 *
 * @param owned whether the user says that these hosts are theirs, if they are not this machine.
 * @throws Problem when an address is not to be used, does not answer, or is none of ours.
 */
async function givenTarget(urls: readonly string[], owned: boolean): Promise<Target> {
  const redisUrl = await redisOfEnvironment()
  if (redisUrl === undefined) {
    throw new Problem(
      '--url needs REDIS_URL, the Redis of these APIs: what it does is measured, too.',
    )
  }
  const { transport } = redisAddress(redisUrl)
  for (const url of [redisUrl, ...urls]) requireOwnHost(url, owned)
  const apis = await Promise.all(urls.map(async (url) => ({ url, variant: await variantAt(url) })))
  const twin = apis.find(({ variant }, index) =>
    apis.slice(0, index).some((other) => other.variant === variant),
  )
  if (twin) throw new Problem(`--url names two APIs of the variant ${twin.variant}.`)
  const { build } = await redisFacts(redisUrl)
  print(`Measuring ${apis.map((api) => `${api.variant} at ${api.url}`).join(', ')}.`)
  return {
    kind: 'given',
    redis: { url: redisUrl, transport, build: build ?? 'foreign' },
    poolSize: null,
    workers: null,
    apis,
    lost: new Promise(() => {}),
    close: async () => {},
  }
}

async function variantAt(url: string): Promise<Variant> {
  const { strategy } = await apiFacts(url)
  const variant = variants.find((known) => known === strategy)
  if (variant) return variant
  throw new Problem(`The API at ${url} is ${strategy}, which is no variant that is known here.`)
}
