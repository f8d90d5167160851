import { hideCredentials, requireOwnHost } from '@onetrip/stack/address.ts'
import { type Call, type WorkloadOptions, workload } from '@onetrip/stack/measure/workload.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import type { Context } from '../../experiment/experiment.ts'
import { IO_THREADS } from '../../experiment/result.ts'
import { clientsOf } from '../../variants.ts'
import { hasRequest, type RequestFlags, requestsOf, requireAnswer } from './request.ts'
import { logIn } from './sessions.ts'
import { putOnSale } from './stock.ts'
import { type Api, findTarget, type TargetOptions } from './target.ts'

/** A stack that is measured over HTTP, and what watches it. */
export interface HttpBench {
  readonly apis: readonly Api[]
  /** Null for a service that is not ours. */
  readonly monitor: RedisMonitor | null
  /** Which of the programs this process did not start. */
  readonly foreign: { readonly apis: boolean; readonly redis: boolean }
  /** Whether the user says that these hosts are theirs. */
  readonly owned: boolean
  /** What each connection sends to an API, over and over. */
  calls(api: Api): Call[][]
}

/** `sessions`: users logged in at each API. */
type HttpBenchOptions = TargetOptions &
  RequestFlags &
  Omit<WorkloadOptions, 'tokens'> & { sessions: number }

/**
 * Finds or starts the stack that is wanted, and logs users in at each API (these need not share the secret
 * that tokens are signed with).
 *
 * @throws Problem, ProgramError when there is none to be measured; the reason of the interrupt.
 */
export async function openBench(context: Context, options: HttpBenchOptions): Promise<HttpBench> {
  if (hasRequest(options)) return await openAnyService(context, options)
  const env = options.workload === 'risk' ? { RISK_FEATURES: 'true' } : {}
  const { kind, redis, apis } = await findTarget(context, { ...options, env })
  const isForeign = kind !== 'started for this'
  const foreign = { apis: isForeign, redis: isForeign || redis.build === 'foreign' }
  const monitor = await RedisMonitor.connect(redis.url)
  context.defer(() => monitor.close())
  if (foreign.redis) {
    const more = kind === 'npm start' ? ' npm start tells more, where it runs.' : ''
    const text = `Redis at ${hideCredentials(redis.url)} closed the connection: it was stopped.${more}`
    void monitor.lost.then(() => context.fail(new Problem(text)))
  }
  const { version, build, ioThreads } = await monitor.facts()
  context.describe('software', {
    Stack: kind,
    Redis: `${version} ${build ?? redis.build}`,
    Clients: clientsOf(apis.map(({ variant }) => variant)),
  })
  context.describe('load', { 'way to Redis': redis.transport, [IO_THREADS]: ioThreads })
  const tokens = new Map<Api, readonly string[]>()
  await context.step('Logging users in', async () => {
    for (const api of apis) {
      const sessions = await logIn(api.url, options.sessions, context.signal)
      // The sessions of a Redis of our own go with it.
      if (foreign.redis) context.defer(() => sessions.end())
      tokens.set(api, sessions.tokens)
    }
  })
  const [first] = apis
  if (options.workload === 'sale' && first) {
    await context.step('Putting items on sale', () =>
      putOnSale(first.url, tokens.get(first)?.[0] ?? '', options.items, context.signal),
    )
  }
  return {
    apis,
    monitor,
    foreign,
    owned: options.iOwnThisHost === true,
    calls: (api) => workload({ ...options, tokens: tokens.get(api) ?? [] }),
  }
}

/** Any HTTP service: its own counters are unknown. */
async function openAnyService(context: Context, options: HttpBenchOptions): Promise<HttpBench> {
  const owned = options.iOwnThisHost === true
  const requests = requestsOf(options)
  for (const { api } of requests) requireOwnHost(api.url, owned)
  for (const { api, call } of requests) {
    await context.step(`Asking ${api.variant}`, () => requireAnswer(api.url, call, context.signal))
  }
  const calls = new Map(requests.map(({ api, call }) => [api, call]))
  return {
    apis: requests.map(({ api }) => api),
    monitor: null,
    foreign: { apis: true, redis: true },
    owned,
    calls: (api) => Array.from({ length: options.connections }, () => [calls.get(api) as Call]),
  }
}

/** The API of a variant that is one of the cases. */
export const apiOf = ({ apis }: HttpBench, name: string | number | undefined): Api =>
  apis.find(({ variant }) => variant === name) as Api
