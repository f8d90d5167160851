import { apiUrl, type CommonApiOptions, type OwnApiOptions, startApi } from './api.ts'
import { startDemo } from './demo-service.ts'
import { socketIn } from './places.ts'
import { endOf, type Program } from './program.ts'
import {
  type RedisStartOptions,
  type RunningRedis,
  useRedis,
  type WantedRedis,
} from './stack-redis.ts'

export interface StackOptions extends Omit<CommonApiOptions, 'signal'>, RedisStartOptions {
  redis: WantedRedis
  apis: readonly OwnApiOptions[]
  /** Starts the demo service, with its socket in the folder `run`. Default: no demo service. */
  demo?: { run: string } | undefined
  /** Called with each line of output of an API or the demo service (`demo`). */
  onApiLine?: (variant: string, line: string) => void
}

/** The programs of a running stack. */
export interface RunningPrograms {
  readonly redis: RunningRedis
  readonly apis: readonly { variant: string; url: string; pid: number }[]
}

export interface Stack extends RunningPrograms {
  /** Resolves with the first program that exits unexpectedly. For a cluster, only when the last node has exited. */
  readonly lost: Promise<Program>
  /** Stops the demo service with its race, the APIs (which answer requests in flight), and Redis. Never rejects. */
  stop(): Promise<void>
}

// An API finishes requests in flight, but does not wait for its clients.
const API_GRACE_MS = 10_000
const DEMO_GRACE_MS = 20_000

/**
 * Starts Redis (unless it is foreign), then the APIs, each as a separate process, and waits until all are ready.
 *
 * @throws Problem if a program does not start, or one that runs exits meanwhile; the reason of `signal`. No program is
 *   left running then.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { redis: wanted, apis: wantedApis, demo: wantedDemo, onApiLine, ...common } = options
  const { host, onStep } = common
  const { promise: lost, resolve: lose } = Promise.withResolvers<Program>()
  const broken = new AbortController()
  void lost.then(async (program) => broken.abort(await endOf(program)))
  const signal = AbortSignal.any([common.signal, broken.signal])
  const apis: Program[] = []
  const undo = new AsyncDisposableStack()
  let stopping: Promise<void> | undefined
  const stop = () => {
    stopping ??= undo.disposeAsync()
    return stopping
  }
  const watch = (program: Program) => void program.exited.then(() => stopping ?? lose(program))

  try {
    const watching = { watch, lose, stopping: () => stopping !== undefined }
    const { url, record } = await useRedis(wanted, options, watching, undo)
    undo.defer(async () => void (await Promise.all(apis.map((api) => api.stop(API_GRACE_MS)))))
    let demoSocket = ''
    if (wantedDemo) {
      const { path, remove } = await socketIn(wantedDemo.run, 'demo.sock')
      undo.defer(remove)
      const demo = await startDemo({
        socket: path,
        redis: url,
        signal,
        monitorUrls: (record.nodes ?? [record]).map(({ url }) => url),
        onLine: (line) => onApiLine?.('demo', line),
      })
      undo.defer(async () => void (await demo.stop(DEMO_GRACE_MS)))
      watch(demo)
      demoSocket = path
    }
    onStep?.('Starting the APIs')
    const env = { ...common.env, DEMO_SOCKET: demoSocket }
    const started = await Promise.allSettled(
      wantedApis.map(async (own) => {
        const { variant, port } = own
        const onLine = (line: string) => onApiLine?.(variant, line)
        const api = await startApi({ ...common, ...own, env, redis: url, signal, onLine })
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
