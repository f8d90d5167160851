import { apiUrl, startApi } from '@onetrip/stack/api.ts'
import { apiSettings } from '@onetrip/stack/api-settings.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { step } from '@onetrip/stack/terminal.ts'
import { type Variant, variantProgram } from '../contenders.ts'
import { type LinkPlan, type OpenLink, openLink } from '../drivers/redis/links.ts'
import type { Context, Server, ServerOptions } from '../redis/experiment.ts'
import { startServer } from '../redis/server.ts'

/** A Redis, and whatever is wanted around it. Everything ends with the `cleanup` it was made with. */
export interface Bench {
  /** The Redis of the APIs, which writes to disk as that of npm start does. */
  redis: Server
  monitor: RedisMonitor
  /** Aborted by Ctrl-C. */
  interrupt: AbortSignal
  /** Likewise, and when a program ends although nobody stopped it. */
  signal: AbortSignal
  /** A further Redis. */
  startRedis: Context['startRedis']
  /** A way to the Redis of the APIs; opened once. */
  openLink(plan: LinkPlan): Promise<OpenLink>
  /** Starts APIs that take each other's tokens; they end with this `cleanup`. */
  startApis(wanted: readonly WantedApi[], cleanup: AsyncDisposableStack): Promise<RunningApi[]>
}

export interface WantedApi {
  variant: Variant
  workers: number
  /** Of its Redis. */
  redisUrl: string
  /** What a PING takes from here to there. */
  pingMs: number
}

export interface RunningApi extends WantedApi {
  url: string
}

/** The longest that the API takes: a distant Redis makes a naive request wait for long. */
const DEADLINE_MS = 60_000

/** @throws Problem, ProgramError when Redis does not start; the reason of `interrupt`. */
export async function openBench(
  cleanup: AsyncDisposableStack,
  interrupt: AbortSignal,
): Promise<Bench> {
  const { poolSize } = apiSettings()
  const broken = new AbortController()
  const signal = AbortSignal.any([interrupt, broken.signal])
  const startRedis = async (options: ServerOptions) => {
    const server = await step('Starting Redis', () =>
      startServer(options, signal, (reason) => broken.abort(reason)),
    )
    cleanup.defer(() => server.stop())
    return server
  }
  const redis = await startRedis({ build: 'patched', config: { appendonly: 'yes' } })
  const monitor = await RedisMonitor.connect(redis.url)
  cleanup.defer(() => monitor.close())
  const sessionSecret = newSecret()
  const open = new Map<string, OpenLink>()
  return {
    redis,
    monitor,
    interrupt,
    signal,
    startRedis,
    async openLink(plan) {
      const known = open.get(plan.name)
      if (known) return known
      const defer = (undo: () => unknown) => cleanup.defer(async () => void (await undo()))
      const link = await openLink(plan, redis, { signal, defer })
      open.set(plan.name, link)
      return link
    },
    async startApis(wanted, cleanup) {
      const ports = await freePorts(wanted.length)
      const start = async (api: WantedApi, port: number): Promise<RunningApi> => {
        const program = await startApi({
          ...api,
          ...variantProgram(api.variant),
          host: '127.0.0.1',
          port,
          sessionSecret,
          poolSize,
          deadlineMs: DEADLINE_MS,
          janitor: false,
          signal,
        })
        let stopping = false
        cleanup.defer(async () => {
          stopping = true
          await program.stop()
        })
        void program.exited.then(async () => {
          if (!stopping) broken.abort(await endOf(program))
        })
        return { ...api, url: apiUrl('127.0.0.1', port) }
      }
      return await step(`Starting ${wanted.length} APIs`, async () => {
        // All have to have started or failed before any is stopped.
        const started = await Promise.allSettled(
          wanted.map((api, index) => start(api, ports[index] ?? 0)),
        )
        return started.map((result) => {
          if (result.status === 'rejected') throw result.reason
          return result.value
        })
      })
    },
  }
}
