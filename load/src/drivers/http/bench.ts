import { setTimeout as delay } from 'node:timers/promises'
import { hideCredentials } from '@onetrip/stack/address.ts'
import { isReady } from '@onetrip/stack/api.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import type { Context } from '../../experiment/experiment.ts'
import { EXPLANATION_MS } from '../../experiment/rounds.ts'
import { clientOf, type Variant } from '../../variants.ts'
import type { Progress } from './generator.ts'
import { logIn } from './sessions.ts'
import { findTarget, type Target, type TargetOptions } from './target.ts'
import { type Call, type WorkloadOptions, workload } from './workload.ts'

export type Api = Target['apis'][number]

/** A stack that is measured over HTTP, and what watches it. */
export interface HttpBench {
  readonly apis: readonly Api[]
  readonly monitor: RedisMonitor
  /** Whether the user says that these hosts are theirs. */
  readonly owned: boolean
  /** What each connection sends to an API, over and over. */
  calls(api: Api): Call[][]
}

export type HttpBenchOptions = TargetOptions &
  Omit<WorkloadOptions, 'tokens'> & {
    /** Users logged in at each API. */
    sessions: number
  }

/**
 * Finds or starts the stack that is wanted, and logs users in at each API (these need not share the secret
 * that tokens are signed with).
 *
 * @throws Problem, ProgramError when there is none to be measured; the reason of the interrupt.
 */
export async function openBench(context: Context, options: HttpBenchOptions): Promise<HttpBench> {
  const target = await findTarget(options, context.signal)
  context.defer(() =>
    target.kind === 'own'
      ? context.step('Stopping the stack of this comparison', () => target.close())
      : target.close(),
  )
  if (target.apis.length === 0) throw new Problem('There is no variant to measure.')
  const monitor = await RedisMonitor.connect(target.redis.url)
  context.defer(() => monitor.close())
  watchPrograms(context, target, monitor)
  const { version, build, ioThreads } = await monitor.facts()
  context.describe('software', {
    Stack: kinds[target.kind],
    Redis: `${version} ${build ?? target.redis.build}`,
    ...(await clientsOf(target.apis.map(({ variant }) => variant))),
  })
  context.describe('load', {
    'way to Redis': target.redis.transport,
    "Redis's I/O threads": ioThreads,
    'pool size': target.poolSize,
    'workers of each API': target.workers,
  })
  const tokens = await context.step('Logging users in', () =>
    logInEverywhere(context, target, options),
  )
  return {
    apis: target.apis,
    monitor,
    owned: options.iOwnThisHost === true,
    calls: (api) => workload({ ...options, tokens: tokens.get(api) ?? [] }),
  }
}

const kinds = { running: 'npm start', given: '--url', own: 'started for this' } as const

/** The API of a variant. */
export function apiOf({ apis }: HttpBench, name: string | number | undefined): Api {
  const api = apis.find(({ variant }) => variant === name)
  if (api) return api
  throw new RangeError(`there is no API of ${name}`)
}

/**
 * Watches a run, once a second: after a second of nothing but failures the API may be gone, and then there
 * is nothing left to measure.
 */
export function giveUpIfGone(context: Context, { url }: Api, now: Progress): void {
  if (now.requestsPerSecond > 0 || now.failures === 0) return
  void isReady(url).then((ready) => {
    if (!ready) context.fail(new Problem(`The API at ${url} is not ready any more.`))
  })
}

async function logInEverywhere(
  context: Context,
  { kind, apis }: Target,
  { sessions }: HttpBenchOptions,
): Promise<Map<Api, readonly string[]>> {
  const tokens = new Map<Api, readonly string[]>()
  for (const api of apis) {
    const loggedIn = await logIn(api.url, sessions, context.signal)
    // What an own stack knows goes with it.
    if (kind !== 'own') context.defer(() => loggedIn.end())
    tokens.set(api, loggedIn.tokens)
  }
  return tokens
}

/** `{ Clients: 'ioredis 6.0.0 (naive, batch); redis 6.3.1 (node-redis)' }` */
export async function clientsOf(variants: readonly Variant[]): Promise<Record<string, string>> {
  const users = new Map<string, Variant[]>()
  for (const variant of variants) {
    const client = await clientOf(variant)
    if (client !== null) users.set(client, [...(users.get(client) ?? []), variant])
  }
  const told = [...users].map(([client, names]) => `${client} (${names.join(', ')})`)
  return told.length > 0 ? { Clients: told.join('; ') } : {}
}

/** Ends the measurement, with the reason, when a program of the stack has gone. */
function watchPrograms(context: Context, target: Target, monitor: RedisMonitor): void {
  const told = target.lost.then(async (program) => context.fail(await endOf(program)))
  void monitor.lost.then(async () => {
    // How a Redis of our own ended is known in a moment.
    if (target.kind === 'own') await Promise.race([told, delay(EXPLANATION_MS)])
    const where = hideCredentials(target.redis.url)
    const more = target.kind === 'running' ? ' npm start tells more, where it runs.' : ''
    context.fail(new Problem(`Redis at ${where} closed the connection: it was stopped.${more}`))
  })
}
