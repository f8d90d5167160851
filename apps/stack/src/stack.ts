import { type RedisUser, redisAddress, type Transport, unixUrl, withPasswordOf } from './address.ts'
import { apiUrl, type CommonApiOptions, type OwnApiOptions, startApi } from './api.ts'
import { startDemo } from './demo/process.ts'
import { socketIn } from './places.ts'
import type { Program } from './program.ts'
import { type RedisBuild, startRedis } from './redis.ts'

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

/** A Redis that runs already, and is left running. */
export interface ForeignRedis {
  kind: 'foreign'
  url: string
}

export interface StackOptions extends CommonApiOptions {
  redis: OwnRedis | ForeignRedis
  apis: readonly OwnApiOptions[]
  /** Starts the demo service, which the APIs reach at a socket in this folder. Default: no demo service. */
  demo?: { run: string } | undefined
  /** Cancels the start; what runs by then is stopped. */
  signal: AbortSignal
  /** Called with each line that an API or the demo service (`demo`) prints. */
  onApiLine?: (variant: string, line: string) => void
}

/** What runs in a stack. */
export interface RunningPrograms {
  readonly redis: {
    /** For monitoring: of an own Redis, with the user `operator` and the password. */
    url: string
    transport: Transport
    /** The build that was started, `installed` (REDIS_SERVER) or `foreign`. */
    build: string
    /** Null for a foreign one. */
    pid: number | null
    /** Path of an own Redis's Unix socket, whichever transport the APIs use. */
    socket: string | null
  }
  readonly apis: readonly { variant: string; url: string; pid: number }[]
}

export interface Stack extends RunningPrograms {
  /** Resolves with the first program that ended by itself. */
  readonly lost: Promise<Program>
  /**
   * Stops the demo service with the race that it runs, the APIs, which answer the requests in flight, and
   * Redis. Never rejects.
   */
  stop(): Promise<void>
}

// An API waits for the answers in flight, not for its clients; Redis may have to write to disk.
const API_GRACE_MS = 10_000
const REDIS_GRACE_MS = 20_000
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
  const { host, signal } = common
  const { promise: lost, resolve: lose } = Promise.withResolvers<Program>()
  const apis: Program[] = []
  let redis: Program | undefined
  let demo: Program | undefined
  let socket: Awaited<ReturnType<typeof socketIn>> | undefined
  let demoSocket: Awaited<ReturnType<typeof socketIn>> | undefined
  let stopping: Promise<void> | undefined

  const watch = (program: Program) => void program.exited.then(() => stopping ?? lose(program))
  const stop = () => {
    stopping ??= (async () => {
      await demo?.stop(DEMO_GRACE_MS)
      await Promise.all(apis.map((api) => api.stop(API_GRACE_MS)))
      await redis?.stop(REDIS_GRACE_MS)
      await Promise.all([socket?.remove(), demoSocket?.remove()])
    })()
    return stopping
  }

  try {
    let [bare, build] = wanted.kind === 'foreign' ? [wanted.url, 'foreign'] : ['', '']
    let secrets: string | undefined
    if (wanted.kind === 'own') {
      const installed = Boolean(process.env.REDIS_SERVER)
      build = installed ? 'installed' : wanted.build
      // An installed server may be too old for the commands that our users are allowed.
      if (!installed) secrets = wanted.secrets
      socket = await socketIn(wanted.run)
      const { path } = socket
      redis = await startRedis({ ...wanted, socket: path, secrets, signal })
      watch(redis)
      bare = wanted.transport === 'unix' ? unixUrl(path) : `redis://127.0.0.1:${wanted.port}`
    }
    const urlFor = async (user: RedisUser) =>
      secrets ? await withPasswordOf(user, bare, secrets) : bare
    const url = await urlFor('operator')
    const redisUrl = await urlFor('api')
    if (wantedDemo) {
      demoSocket = await socketIn(wantedDemo.run, 'demo.sock')
      demo = await startDemo({
        ...{ socket: demoSocket.path, redisUrl, monitorUrl: url, signal },
        onLine: (line) => onApiLine?.('demo', line),
      })
      watch(demo)
    }
    const env = { ...common.env, DEMO_SOCKET: demoSocket?.path ?? '' }
    const started = await Promise.allSettled(
      wantedApis.map(async (own) => {
        const { variant, port } = own
        const onLine = (line: string) => onApiLine?.(variant, line)
        const api = await startApi({ ...common, ...own, env, redisUrl, onLine })
        apis.push(api)
        watch(api)
        return { variant, url: apiUrl(host, port), pid: api.pid }
      }),
    )
    const ready = started.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
    const { transport } = redisAddress(url)
    const [pid, path] = [redis?.pid ?? null, socket?.path ?? null]
    return { redis: { url, transport, build, pid, socket: path }, apis: ready, lost, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
