import { runningRedis } from '@onetrip/stack/address.ts'
import { type WorkloadOptions, workload } from '@onetrip/stack/measure/workload.ts'
import type { Context } from '../../experiments/experiment.ts'
import { IO_THREADS } from '../../rounds/result.ts'
import { matches } from '../../rounds/rows.ts'
import type { Case } from '../../rounds/shape.ts'
import { clientsOf } from '../../variants.ts'
import type { Age } from '../age.ts'
import { removeItems } from './items.ts'
import { saturate, warm } from './saturation.ts'
import { logIn } from './sessions.ts'
import { type Api, findTargets, type Target, type TargetOptions } from './target.ts'

/** The measured APIs. */
export interface HttpBench {
  readonly cases: readonly ReturnType<typeof caseOf>[]
  /** Runs `work` with the API of a case. With `--processes fresh`, the API is started for it, and warmed up. */
  use<Result>(one: Case, work: (api: Api) => Promise<Result>): Promise<Result>
}

export interface HttpBenchOptions extends TargetOptions, Omit<WorkloadOptions, 'tokens'> {
  sessions: number
  /** The warm-up of an API in seconds. */
  warmup: number
  processes?: Age
}

const caseOf = ({ link, ioThreads, build, variant }: Target) => ({
  link,
  ioThreads,
  build,
  variant,
})

/** The factors of a case of the bench. */
export const apiFactors = [
  { name: 'link' },
  { name: 'ioThreads', label: 'I/O threads' },
  { name: 'build' },
  { name: 'variant' },
] as const

/**
 * Finds or starts the APIs to measure, and logs in `options.sessions` users at each of them (the APIs may sign tokens
 * with different secrets).
 *
 * @throws Problem, ProgramError when the APIs cannot be found or started; the reason of the interrupt.
 */
export async function openBench(context: Context, options: HttpBenchOptions): Promise<HttpBench> {
  const { processes, warmup, sessions: users } = options
  const { signal } = context
  const targets = await findTargets(context, options)
  const foreign = targets[0]?.foreign.redis ? runningRedis() : undefined
  if (foreign) context.defer(() => removeItems(foreign, options.items))
  const all = <Value>(of: (target: Target) => Value) => [...new Set(targets.map(of))]
  context.describe('software', {
    Stack: targets[0]?.foreign.apis ? '--url' : 'started for this',
    Redis: all(({ redis }) => redis).join(', '),
    Clients: clientsOf(all(({ variant }) => variant)),
  })
  const threads = all(({ ioThreads }) => ioThreads || null)
  context.describe('load', {
    'way to Redis': all(({ link }) => link).join(', '),
    [IO_THREADS]: threads.length > 1 ? threads.join(', ') : (threads[0] ?? null),
  })
  const open = async (target: Target) => {
    const { url, stop } = await target.start()
    const sessions = await logIn(url, users, signal).catch(async (error) => {
      await stop()
      throw error
    })
    const calls = (connections = options.connections) =>
      workload({ ...options, connections, tokens: sessions.tokens })
    const close = async () => {
      // A Redis that was started for this run ends together with its sessions.
      if (target.foreign.redis) await sessions.end()
      await stop()
    }
    return { api: { ...target, url, owned: options.iOwnThisHost === true, calls }, close }
  }
  const kept = new Map<Target, Api>()
  if (processes !== 'fresh') {
    await context.step('Starting the APIs and logging users in', async () => {
      for (const target of targets) {
        const { api, close } = await open(target)
        context.defer(close)
        kept.set(target, api)
      }
    })
  }
  for (const api of processes === 'warm' ? kept.values() : []) {
    await context.step(`Warming up ${api.variant}`, () => warm(api, signal))
  }
  return {
    cases: targets.map(caseOf),
    async use(one, work) {
      const target = targets.find((known) => matches(one, caseOf(known)))
      if (!target) throw new RangeError(`no API for ${JSON.stringify(one)}`)
      const running = kept.get(target)
      if (running) return await work(running)
      const { api, close } = await open(target)
      try {
        if (warmup > 0) await saturate(api, { seconds: warmup, signal })
        return await work(api)
      } finally {
        await close()
      }
    },
  }
}

/** The cases to run before the first round: APIs that are started for each run are warmed up by `use`. */
export const warmUpOf = (
  cases: readonly Case[],
  { warmup, processes }: Pick<HttpBenchOptions, 'warmup' | 'processes'>,
) => (warmup === 0 || processes === 'fresh' ? [] : cases)
