import type { Transport } from './address.ts'
import { apiUrl, type CommonApiOptions, type OwnApiOptions, startApi } from './api.ts'
import { startDemo } from './demo/process.ts'
import { socketIn } from './places.ts'
import type { Program } from './program.ts'
import type { RedisBuild } from './redis.ts'
import { type UsedRedis, useRedis } from './stack-redis.ts'

/** A Redis that the stack starts. */
export interface OwnRedis {
  kind: 'own'
  /** Unless REDIS_SERVER names an installed redis-server. */
  build: RedisBuild
  transport: Transport
  port: number
  /** Folder for its socket. */
  run: string
  /** Folder where it keeps its data. */
  directory: string
  /** Folder of its users' passwords, made where absent. */
  secrets: string
  /** Further configuration, such as `{ 'io-threads': '3' }`. */
  config?: Record<string, string>
}

/** A Redis Cluster that the stack starts: three primaries, each with a replica. */
export interface OwnCluster extends Omit<OwnRedis, 'kind' | 'transport' | 'run'> {
  kind: 'cluster'
  /** Of the first node; the others have the next ones, and after them the cluster buses. */
  port: number
}

/** A Redis that runs already, and is left running. */
export interface ForeignRedis {
  kind: 'foreign'
  url: string
}

export interface StackOptions extends CommonApiOptions {
  redis: OwnRedis | OwnCluster | ForeignRedis
  apis: readonly OwnApiOptions[]
  /** Starts the demo service, which the APIs reach at a socket in this folder. Default: no demo service. */
  demo?: { run: string } | undefined
  /** Cancels the start; what runs by then is stopped. */
  signal: AbortSignal
  /** Called with each line that an API or the demo service (`demo`) prints. */
  onApiLine?: (variant: string, line: string) => void
  /** Called with what happens next during the start, such as `Starting the APIs`. */
  onStep?: (text: string) => void
  /** Called with lines about nodes of a cluster that end by themselves, which the stack survives. */
  onLoss?: (line: string) => void
}

/** What runs in a stack. */
export interface RunningPrograms {
  readonly redis: {
    /** For monitoring: of an own Redis, with the user `operator` and the password. Of a cluster, the first node. */
    url: string
    transport: Transport
    /** The build that was started, `installed` (REDIS_SERVER) or `foreign`. */
    build: string
    /** Null for a foreign one, and for a cluster. */
    pid: number | null
    /** Path of an own Redis's Unix socket, whichever transport the APIs use. A cluster has none. */
    socket: string | null
    /** Of a cluster; with URLs as above, and with what each was when the cluster was ready. */
    nodes?: readonly {
      url: string
      pid: number
      /** The address of its primary; null for a primary. */
      replicaOf: string | null
    }[]
  }
  readonly apis: readonly { variant: string; url: string; pid: number }[]
}

export interface Stack extends RunningPrograms {
  /** Resolves with the first program that ended by itself; of a cluster only when the last node has ended. */
  readonly lost: Promise<Program>
  /**
   * Stops the demo service with the race that it runs, the APIs, which answer the requests in flight, and
   * Redis. Never rejects.
   */
  stop(): Promise<void>
}

// An API waits for the answers in flight, not for its clients.
const API_GRACE_MS = 10_000
const DEMO_GRACE_MS = 20_000

/**
 * Starts Redis (unless it is a foreign one) and then the APIs, each as a process of its own, and
 * waits until all of them are ready.
 *
 * @throws ProgramError when one of them does not start; the reason of `signal`. Nothing is left
 *   running then.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { redis: wanted, apis: wantedApis, demo: wantedDemo, onApiLine, ...common } = options
  const { host, signal, onStep } = common
  const { promise: lost, resolve: lose } = Promise.withResolvers<Program>()
  const apis: Program[] = []
  let redis: UsedRedis | undefined
  let demo: Program | undefined
  let demoSocket: Awaited<ReturnType<typeof socketIn>> | undefined
  let stopping: Promise<void> | undefined

  const watch = (program: Program) => void program.exited.then(() => stopping ?? lose(program))
  const stop = () => {
    stopping ??= (async () => {
      await demo?.stop(DEMO_GRACE_MS)
      await Promise.all(apis.map((api) => api.stop(API_GRACE_MS)))
      await redis?.stop()
      await demoSocket?.remove()
    })()
    return stopping
  }

  try {
    redis = await useRedis(wanted, options, { watch, lose, stopping: () => stopping !== undefined })
    const { target, record } = redis
    if (wantedDemo) {
      demoSocket = await socketIn(wantedDemo.run, 'demo.sock')
      demo = await startDemo({
        ...{ socket: demoSocket.path, redis: target, signal },
        monitorUrls: (record.nodes ?? [record]).map(({ url }) => url),
        onLine: (line) => onApiLine?.('demo', line),
      })
      watch(demo)
    }
    onStep?.('Starting the APIs')
    const env = { ...common.env, DEMO_SOCKET: demoSocket?.path ?? '' }
    const started = await Promise.allSettled(
      wantedApis.map(async (own) => {
        const { variant, port } = own
        const onLine = (line: string) => onApiLine?.(variant, line)
        const api = await startApi({ ...common, ...own, env, redis: target, onLine })
        apis.push(api)
        watch(api)
        return { variant, url: apiUrl(host, port), pid: api.pid }
      }),
    )
    const ready = started.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
    return { redis: record, apis: ready, lost, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
