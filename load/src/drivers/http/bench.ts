import { setTimeout as delay } from 'node:timers/promises'
import { hideCredentials } from '@onetrip/stack/address.ts'
import { isReady } from '@onetrip/stack/api.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import type { Context } from '../../experiment/experiment.ts'
import { EXPLANATION_MS } from '../../experiment/rounds.ts'
import { clientOf, type Variant } from '../../variants.ts'
import type { Progress } from './generator.ts'
import { logIn } from './sessions.ts'
import { type Api, findTarget, type Target, type TargetOptions } from './target.ts'
import { type Call, type WorkloadOptions, workload } from './workload.ts'

/** A stack that is measured over HTTP, and what watches it. */
export interface HttpBench {
  readonly apis: readonly Api[]
  readonly monitor: RedisMonitor
  /** Which of the programs this process did not start. */
  readonly foreign: { readonly apis: boolean; readonly redis: boolean }
  /** Whether the user says that these hosts are theirs. */
  readonly owned: boolean
  /** What each connection sends to an API, over and over. */
  calls(api: Api): Call[][]
}

type HttpBenchOptions = TargetOptions &
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
  const target = await findTarget(context, options)
  const { kind, redis, apis } = target
  const isForeign = kind !== 'started for this' || redis.build === 'foreign'
  const monitor = await RedisMonitor.connect(redis.url)
  context.defer(() => monitor.close())
  watchRedis(context, target, monitor)
  const { version, build, ioThreads } = await monitor.facts()
  context.describe('software', {
    Stack: kind,
    Redis: `${version} ${build ?? redis.build}`,
    Clients: await clientsOf(apis.map(({ variant }) => variant)),
  })
  context.describe('load', {
    'way to Redis': redis.transport,
    "Redis's I/O threads": ioThreads,
    'pool size': target.poolSize ?? null,
    'workers of each API': target.workers ?? null,
  })
  const tokens = new Map<Api, readonly string[]>()
  await context.step('Logging users in', async () => {
    for (const api of apis) {
      const loggedIn = await logIn(api.url, options.sessions, context.signal)
      // The sessions of a Redis of our own go with it.
      if (isForeign) context.defer(() => loggedIn.end())
      tokens.set(api, loggedIn.tokens)
    }
  })
  return {
    ...{ apis, monitor },
    foreign: { apis: kind !== 'started for this', redis: isForeign },
    owned: options.iOwnThisHost === true,
    calls: (api) => workload({ ...options, tokens: tokens.get(api) ?? [] }),
  }
}

/** The API of a variant. */
export function apiOf({ apis }: HttpBench, name: string | number | undefined): Api {
  const api = apis.find(({ variant }) => variant === name)
  if (api) return api
  throw new RangeError(`there is no API of ${name}`)
}

/** To be called once a second: after a second of failures only, ends the run if the API is not ready. */
export function giveUpIfGone(context: Context, { url }: Api, now: Progress): void {
  if (now.requestsPerSecond > 0 || now.failures === 0) return
  void isReady(url).then((ready) => {
    if (!ready) context.fail(new Problem(`The API at ${url} is not ready any more.`))
  })
}

/** `ioredis 6.0.0 (naive, batch); redis 6.3.1 (node-redis)`; null for none. */
export async function clientsOf(names: readonly Variant[]): Promise<string | null> {
  const known = await Promise.all(names.map(async (name) => [await clientOf(name), name] as const))
  const users = Map.groupBy(known, ([client]) => client)
  users.delete(null)
  const texts = [...users].map(([client, of]) => `${client} (${of.map(([, n]) => n).join(', ')})`)
  return texts.join('; ') || null
}

/** Ends the measurement when Redis closes the monitor's connection. */
function watchRedis(context: Context, { kind, redis }: Target, monitor: RedisMonitor): void {
  void monitor.lost.then(async () => {
    // How a Redis of our own ended is reported meanwhile.
    if (kind === 'started for this') await delay(EXPLANATION_MS / 2, undefined, { ref: false })
    const where = hideCredentials(redis.url)
    const more = kind === 'npm start' ? ' npm start tells more, where it runs.' : ''
    context.fail(new Problem(`Redis at ${where} closed the connection: it was stopped.${more}`))
  })
}
