import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { articleKeys, parseInfo, SessionStore, writeSession } from '@onetrip/session-store'
import { seededRandom, skewedItems } from '@onetrip/stack/measure/workload.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Redis } from 'ioredis'
import * as batch from '../../../../examples/pattern/batch.ts'
import * as naive from '../../../../examples/pattern/naive.ts'
import * as pipeline from '../../../../examples/pattern/pipeline.ts'
import * as sequential from '../../../../examples/pattern/sequential.ts'
import { sendingOf } from '../../compared-strategies.ts'
import { type Caller, callFor, percentilesOf, warmUp } from '../../drivers/redis/callers.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { readCpu } from '../../drivers/redis/threads.ts'

export const operations = ['update-token', 'record-view', 'pattern'] as const
export type Operation = (typeof operations)[number]

interface CallsOptions {
  /** The address of the server, or of a relay in front of it. */
  url: string
  /** A strategy of the API, or one of `comparedStrategies`. */
  strategy: string
  poolSize: number
  operation: Operation
  /** Calls in flight, each with its own session. */
  concurrency: number
  seconds: number
  /** Whether to warm up until the rate stops rising. */
  isWarmUp: boolean
}

/** Longer than the slowest call: a call with a new connection over the slowest link. */
const DEADLINE_MS = 30_000
const SEED = 17
/** The number of items, viewed by Zipf's law, if there are several callers. */
const ITEMS = 1_000
/** The warm-up of connections and compiler, as a share of the measured time. */
const WARM_UP = 0.2

/**
 * The loop of `benchmark_update_token` in Redis in Action: each caller makes the next call when the previous one
 * has returned, until the time is over. Then the number of calls is compared with the views that Redis counted.
 *
 * @returns latencies in milliseconds, and CPU time per call in microseconds.
 * @throws Problem when the numbers differ; the error of a call; the reason of `signal`.
 */
export async function measureCalls(
  server: Pick<RedisServer, 'socket' | 'cpu'>,
  options: CallsOptions,
  signal?: AbortSignal,
) {
  const { strategy, operation, concurrency, seconds, isWarmUp } = options
  const pattern = operation === 'pattern' ? await openPattern(options) : undefined
  const redis = new Redis(server.socket)
  const store = new SessionStore({
    ...(operation === 'pattern'
      ? { redis: options.url, prefix: 'pattern:' }
      : sendingOf(strategy, {
          redis: options.url,
          poolSize: options.poolSize,
          deadlineMs: DEADLINE_MS,
        })),
    tokens: { secrets: [newSecret()] },
    deadlineMs: DEADLINE_MS,
    janitor: 'elsewhere', // its commands would be measured, too
  })
  try {
    await store.ready()
    const viewsBefore = await countViews(store)
    const nextItem = skewedItems(concurrency === 1 ? 1 : ITEMS, seededRandom(SEED))
    const callers = await Promise.all(
      Array.from({ length: concurrency }, (_, index) => {
        const user = `user-${index}` // each its own: a user has at most 100 sessions
        return pattern
          ? patternCaller(pattern, user, nextItem)
          : callerOf({ store, user, operation, nextItem })
      }),
    )
    const warmUpCalls = await warmUp(
      callers,
      { seconds: seconds * WARM_UP, isLong: isWarmUp },
      signal,
    )
    const connectionsBefore = await countConnections(redis)
    const ownBefore = process.cpuUsage()
    const { result: latencies, cpu } = await cpuDuring(server, () =>
      callFor(callers, seconds, signal),
    )
    const own = process.cpuUsage(ownBefore)
    const opened = (await countConnections(redis)) - connectionsBefore
    const calls = latencies.count
    const counted = (await countViews(store)) - viewsBefore
    if (counted !== warmUpCalls + calls) {
      throw new Problem(
        `${strategy} made ${warmUpCalls + calls} calls, but Redis counted ${counted} views.`,
      )
    }
    return {
      callsPerSecond: calls / cpu.seconds,
      ...percentilesOf(latencies),
      connectionsPerSecond: opened / cpu.seconds,
      clientCpuMicros: (own.user + own.system) / calls,
      ...microsPer(cpu, calls),
    }
  } finally {
    redis.disconnect()
    await pattern?.close()
    await store.close()
  }
}

const patterns: Readonly<Record<string, typeof naive | undefined>> = {
  naive,
  sequential,
  pipeline,
  batch,
}

/** @throws Problem if `examples/pattern` has no such strategy. */
async function openPattern({ strategy, url }: CallsOptions) {
  const pattern = patterns[strategy]
  if (pattern) return await pattern.openSessions(url)
  const names = Object.keys(patterns).join(',')
  throw new Problem(`examples/pattern has no ${strategy}: use --strategies ${names}.`)
}

async function patternCaller(
  { login, view }: Awaited<ReturnType<typeof openPattern>>,
  user: string,
  nextItem: () => string,
): Promise<Caller> {
  const token = await login(user)
  return () => view(token, nextItem())
}

interface CallerOptions {
  store: SessionStore
  user: string
  operation: Operation
  nextItem: () => string
}

async function callerOf({ store, user, operation, nextItem }: CallerOptions): Promise<Caller> {
  const { token } = await store.login(user)
  if (operation === 'record-view') return () => store.recordView(token, nextItem())
  const id = token.slice(0, token.indexOf('.'))
  return () => store.run(writeSession(articleKeys, { id, user, item: nextItem() }, Date.now()))
}

/** The sum of the counts of all items. */
export async function countViews(store: SessionStore): Promise<number> {
  const popular = await store.popularItems(ITEMS)
  return popular.reduce((sum, { views }) => sum + views, 0)
}

async function countConnections(redis: Redis): Promise<number> {
  return Number(parseInfo(await redis.info('stats')).get('total_connections_received'))
}

/** Like `measureCalls`, in a new thread, whose code has not been compiled yet. */
export async function measureInThread(
  { pid, socket }: RedisServer,
  options: CallsOptions,
  signal: AbortSignal,
): ReturnType<typeof measureCalls> {
  const calls = { pid, socket, options }
  const worker = new Worker(new URL(import.meta.url), { workerData: { calls } })
  try {
    const [run] = await once(worker, 'message', { signal })
    return run
  } finally {
    await worker.terminate()
  }
}

if (workerData?.calls) {
  const { pid, socket, options } = workerData.calls
  parentPort?.postMessage(await measureCalls({ socket, cpu: () => readCpu(pid) }, options))
}
