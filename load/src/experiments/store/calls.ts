import { createHistogram } from 'node:perf_hooks'
import { createSessionStore, type SessionStore, type StrategyName } from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { seededRandom, skewedItems } from '../../drivers/http/workload.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'

export const operations = ['update-token', 'record-view'] as const

interface CallsOptions {
  server: RedisServer
  /** Of the server, or of a relay in front of it. */
  url: string
  strategy: StrategyName
  poolSize: number
  operation: (typeof operations)[number]
  /** Calls in flight at the same time, each with a session of its own. */
  concurrency: number
  /** Different items, viewed by Zipf's law. */
  items: number
  seconds: number
  signal: AbortSignal
}

/** Long enough for the slowest call: a connection each over the slowest link. */
const DEADLINE_MS = 30_000
const SEED = 17
/** Unmeasured calls come first, for this share of the time: connections and compiler warm up. */
const WARM_UP = 0.2

/**
 * Does what the documents' `benchmark_update_token` does: each caller calls again as soon as the call before
 * has returned, until the time is up. Then the views that Redis counted are compared with the calls.
 *
 * @returns milliseconds per call, and microseconds of CPU time per call.
 * @throws Problem when the two differ; what a call throws; the reason of `signal`.
 */
export async function measureCalls(options: CallsOptions) {
  const { server, url, strategy, poolSize, seconds, signal } = options
  const store = createSessionStore({
    ...{ url, strategy, poolSize, tokens: { secrets: [newSecret()] } },
    deadlineMs: DEADLINE_MS,
    janitor: false, // its commands are not part of what is measured
  })
  try {
    await store.ready()
    const viewsBefore = await countViews(store)
    const callers = await callersOf(store, options)
    const warmUp = await callFor(callers, seconds * WARM_UP, signal)
    const redisBefore = await server.cpu()
    const ownBefore = process.cpuUsage()
    const { latencies, taken } = await callFor(callers, seconds, signal)
    const own = process.cpuUsage(ownBefore)
    const redis = cpuBetween(redisBefore, await server.cpu())
    const calls = latencies.count
    const [made, counted] = [
      warmUp.latencies.count + calls,
      (await countViews(store)) - viewsBefore,
    ]
    if (counted !== made) {
      throw new Problem(`${strategy} made ${made} calls, but Redis counted ${counted} views.`)
    }
    return {
      callsPerSecond: calls / taken,
      p50: latencies.percentile(50) / 1e6,
      p99: latencies.percentile(99) / 1e6,
      clientCpuMicros: (own.user + own.system) / calls,
      redisCpuMicros: (redis.cpuSeconds * 1e6) / calls,
      redisMainCpuMicros: (redis.mainCpuSeconds * 1e6) / calls,
    }
  } finally {
    await store.close()
  }
}

type Caller = () => Promise<unknown>

async function callFor(callers: readonly Caller[], seconds: number, signal: AbortSignal) {
  const latencies = createHistogram({ figures: 3 })
  const start = performance.now()
  const until = start + seconds * 1_000
  await Promise.all(
    callers.map(async (call) => {
      do {
        const begun = process.hrtime.bigint()
        await call()
        latencies.record(process.hrtime.bigint() - begun)
      } while (performance.now() < until && !signal.aborted)
    }),
  )
  signal.throwIfAborted()
  return { latencies, taken: (performance.now() - start) / 1_000 }
}

function callersOf(
  store: SessionStore,
  { operation, concurrency, items }: CallsOptions,
): Promise<Caller[]> {
  const nextItem = skewedItems(items, seededRandom(SEED))
  const caller = async (): Promise<Caller> => {
    const token = store.issueToken()
    if (operation === 'update-token') return () => store.updateToken(token, 'user', nextItem())
    await store.updateToken(token, 'user')
    return () => store.recordView(token, nextItem())
  }
  return Promise.all(Array.from({ length: concurrency }, caller))
}

async function countViews(store: SessionStore): Promise<number> {
  const popular = await store.popularItems(1_000)
  return popular.reduce((sum, { views }) => sum + views, 0)
}
