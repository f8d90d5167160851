import { hideCredentials } from '@onetrip/stack/address.ts'
import { type Call, type WorkloadOptions, workload } from '@onetrip/stack/measure/workload.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import type { Context } from '../../experiment/experiment.ts'
import { IO_THREADS } from '../../experiment/result.ts'
import { matches } from '../../experiment/rows.ts'
import type { Case } from '../../experiment/shape.ts'
import { clientsOf } from '../../variants.ts'
import { logIn } from './sessions.ts'
import { type Api, findTarget, type TargetOptions } from './target.ts'

/** The measured APIs, and the monitor of their Redis. */
export interface HttpBench {
  readonly apis: readonly Api[]
  readonly monitor: RedisMonitor
  /** Whether these programs were started by another process. */
  readonly foreign: { readonly apis: boolean; readonly redis: boolean }
  /** Whether the user gave `--i-own-this-host`. */
  readonly owned: boolean
  /** A list of calls for each connection to an API. The connection repeats its list. Default: `options.connections`. */
  calls(api: Api, connections?: number): Call[][]
}

type HttpBenchOptions = TargetOptions & Omit<WorkloadOptions, 'tokens'> & { sessions: number }

/**
 * Finds or starts the APIs to measure, and logs in `options.sessions` users at each of them (the APIs may sign tokens
 * with different secrets).
 *
 * @throws Problem, ProgramError when the APIs cannot be found or started; the reason of the interrupt.
 */
export async function openBench(context: Context, options: HttpBenchOptions): Promise<HttpBench> {
  const { kind, redis, apis } = await findTarget(context, options)
  const isForeign = kind !== 'started for this'
  const foreign = { apis: isForeign, redis: isForeign || redis.build === 'foreign' }
  const monitor = await RedisMonitor.connect(redis.url)
  context.defer(() => monitor.close())
  if (foreign.redis) {
    const text = `Redis at ${hideCredentials(redis.url)} has stopped: it closed the connection.`
    void monitor.lost.then(() => context.fail(new Problem(text)))
  }
  const { version, build, ioThreads } = await monitor.facts()
  context.describe('software', {
    Stack: kind,
    Redis: `${version} ${build ?? redis.build}`,
    Clients: clientsOf([...new Set(apis.map(({ variant }) => variant))]),
  })
  const ways = new Set(apis.map(({ link }) => link))
  context.describe('load', { 'way to Redis': [...ways].join(', '), [IO_THREADS]: ioThreads })
  const tokens = new Map<Api, readonly string[]>()
  await context.step('Logging users in', async () => {
    for (const api of apis) {
      const sessions = await logIn(api.url, options.sessions, context.signal)
      // A Redis that was started for this run ends together with its sessions.
      if (foreign.redis) context.defer(() => sessions.end())
      tokens.set(api, sessions.tokens)
    }
  })
  return {
    apis,
    monitor,
    foreign,
    owned: options.iOwnThisHost === true,
    calls: (api, connections = options.connections) =>
      workload({ ...options, connections, tokens: tokens.get(api) ?? [] }),
  }
}

/** The API with the variant, and the link if there are several. */
export const apiOf = ({ apis }: HttpBench, part: Partial<Case>): Api =>
  apis.find((api) => matches({ ...api }, part)) as Api
