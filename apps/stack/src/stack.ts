import { redisAddress, type Transport, unixUrl } from './address.ts'
import { type ApiOptions, apiUrl, startApi } from './api.ts'
import { type SocketPlace, socketIn } from './places.ts'
import type { Program } from './program.ts'
import { type RedisBuild, startRedis } from './redis.ts'
import { withPasswordOf } from './users.ts'

/** A Redis that we start, and where it is and keeps its files. */
export interface OwnRedis {
  kind: 'own'
  build: RedisBuild
  transport: Transport
  port: number
  /** Folder for its socket. */
  run: string
  /** Folder where it keeps its data. */
  directory: string
  /** Folder of the passwords of its users, made where absent. */
  secrets: string
}

/** A Redis of the user's, which is left running. */
export interface ForeignRedis {
  kind: 'foreign'
  url: string
}

export interface StackOptions {
  redis: OwnRedis | ForeignRedis
  /** Where the APIs listen. */
  host: string
  apis: readonly Pick<ApiOptions, 'variant' | 'program' | 'afterExit' | 'port'>[]
  sessionSecret: string
  logLevel?: string
  /** Processes of each API, and connections of each; default as for `startApi`. */
  workers?: number
  poolSize?: number
  /** Whether the APIs run a janitor; default as for `startApi`. */
  janitor?: boolean
  /** Gives the start up; whatever runs by then is stopped. */
  signal: AbortSignal
  /** What an API prints. */
  onApiLine?: (variant: string, line: string) => void
}

export interface Stack {
  readonly redis: {
    /** To watch it by: of an own one, as the user `operator`, with the password. */
    url: string
    transport: Transport
    /** Null for a foreign one. */
    pid: number | null
    /** Of an own one, whichever transport the APIs use. */
    socket: string | null
  }
  readonly apis: readonly { variant: string; url: string; pid: number }[]
  /** Resolves with the first program that ended although nobody stopped it. */
  readonly lost: Promise<Program>
  /** The APIs first, which answer what they have begun, then Redis. Never rejects. */
  stop(): Promise<void>
}

// Closing, an API waits for answers, not for clients; Redis may still have to write to disk.
const API_GRACE_MS = 10_000
const REDIS_GRACE_MS = 20_000

/**
 * Starts Redis (unless it is a foreign one) and then the APIs, each as a process of its own, and
 * waits until all of them are ready.
 *
 * @throws ProgramError when one of them does not start; the reason of `signal`. Nothing is left
 *   running then.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const lost = Promise.withResolvers<Program>()
  const apis: Program[] = []
  let redis: Program | undefined
  let socket: SocketPlace | undefined
  let stopping: Promise<void> | undefined

  const watch = (program: Program) => {
    void program.exited.then(() => {
      if (!stopping) lost.resolve(program)
    })
  }
  const stop = () => {
    stopping ??= (async () => {
      await Promise.all(apis.map((api) => api.stop(API_GRACE_MS)))
      await redis?.stop(REDIS_GRACE_MS)
      await socket?.remove()
    })()
    return stopping
  }

  try {
    let url: string
    let forApis: string
    if (options.redis.kind === 'own') {
      const { build, port, transport, run, directory } = options.redis
      // An installed server may be too old for the commands that our users are allowed.
      const secrets = process.env.REDIS_SERVER ? undefined : options.redis.secrets
      socket = await socketIn(run)
      redis = await startRedis({
        build,
        port,
        socket: socket.path,
        directory,
        ...(secrets !== undefined && { secrets }),
        signal: options.signal,
      })
      watch(redis)
      const bare = transport === 'unix' ? unixUrl(socket.path) : `redis://127.0.0.1:${port}`
      url = secrets === undefined ? bare : await withPasswordOf('operator', bare, secrets)
      forApis = secrets === undefined ? bare : await withPasswordOf('api', bare, secrets)
    } else {
      url = forApis = options.redis.url
    }
    const started = await Promise.allSettled(
      options.apis.map(async (wanted) => {
        const { variant, port } = wanted
        const api = await startApi({
          ...wanted,
          host: options.host,
          redisUrl: forApis,
          sessionSecret: options.sessionSecret,
          ...(options.logLevel !== undefined && { logLevel: options.logLevel }),
          ...(options.workers !== undefined && { workers: options.workers }),
          ...(options.poolSize !== undefined && { poolSize: options.poolSize }),
          ...(options.janitor !== undefined && { janitor: options.janitor }),
          signal: options.signal,
          onLine: (line) => options.onApiLine?.(variant, line),
        })
        apis.push(api)
        watch(api)
        return { variant, url: apiUrl(options.host, port), pid: api.pid }
      }),
    )
    const ready = started.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
    return {
      redis: {
        url,
        transport: redisAddress(url).transport,
        pid: redis?.pid ?? null,
        socket: socket?.path ?? null,
      },
      apis: ready,
      lost: lost.promise,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
