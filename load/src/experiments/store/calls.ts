import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { createSessionStore, type SessionStore, type StrategyName } from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { type Random, seededRandom, skewedItems } from '../../drivers/http/workload.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'

export const operations = ['update-token', 'record-view'] as const
export type Operation = (typeof operations)[number]

interface CallsOptions {
  /** The Redis, which `url` leads to. */
  server: RedisServer
  url: string
  strategy: StrategyName
  poolSize: number
  operation: Operation
  /** Calls in flight at the same time, each with a session of its own. */
  concurrency: number
  /** Items that are viewed, few of them often (Zipf). */
  items: number
  seconds: number
  signal: AbortSignal
}

interface CallsRun {
  calls: number
  callsPerSecond: number
  /** Milliseconds. */
  p50: number
  p99: number
  max: number
  /** CPU time per call, in microseconds: this process, Redis (all threads), and Redis's main thread. */
  clientCpuMicros: number
  redisCpuMicros: number
  redisMainCpuMicros: number
}

/** Long enough for the slowest call, a connection each over the slowest link. */
const DEADLINE_MS = 30_000
const SEED = 17
/** Unmeasured calls come first, for this share of the time: connections and compiler warm up. */
const WARM_UP = 0.2

/**
 * Calls a function of a store again and again, and compares the views that Redis counted with the calls.
 *
 * @throws Problem when the two differ; what a call throws; the reason of `signal`.
 */
export async function measureCalls(options: CallsOptions): Promise<CallsRun> {
  const { server, url, strategy, poolSize } = options
  const store = createSessionStore({
    ...{ url, strategy, poolSize, tokens: { secrets: [newSecret()] } },
    deadlineMs: DEADLINE_MS,
    janitor: false, // its commands are not part of what is measured
  })
  try {
    await store.ready()
    const before = await countViews(server)
    const { all, run } = await callAgain(store, options)
    const counted = (await countViews(server)) - before
    if (counted === all) return run
    throw new Problem(
      `${strategy} made ${all} calls, but Redis counted ${counted} views: that must not happen.`,
    )
  } finally {
    await store.close()
  }
}

/**
 * As the documents' `benchmark_update_token` does: each caller calls again as soon as the call before has
 * returned, until the time is up. `all` counts the calls of the warm-up, too.
 */
async function callAgain(
  store: SessionStore,
  options: CallsOptions,
): Promise<{ all: number; run: CallsRun }> {
  const { server, operation, concurrency, items, seconds, signal } = options
  const random = seededRandom(SEED)
  const callers = await Promise.all(
    Array.from({ length: concurrency }, () => caller(store, operation, items, random)),
  )
  const callUntil = async (until: number, latencies: RecordableHistogram) => {
    await Promise.all(
      callers.map(async (call) => {
        do {
          const start = process.hrtime.bigint()
          await call()
          latencies.record(process.hrtime.bigint() - start)
        } while (performance.now() < until && !signal.aborted)
      }),
    )
    signal.throwIfAborted()
  }

  const warmUp = createHistogram()
  await callUntil(performance.now() + seconds * WARM_UP * 1_000, warmUp)
  const latencies = createHistogram({ figures: 3 })
  const cpuBefore = await server.cpu()
  const ownBefore = process.cpuUsage()
  const start = performance.now()
  await callUntil(start + seconds * 1_000, latencies)
  const taken = (performance.now() - start) / 1_000
  const own = process.cpuUsage(ownBefore)
  const redis = cpuBetween(cpuBefore, await server.cpu())
  const calls = latencies.count
  return {
    all: warmUp.count + calls,
    run: {
      calls,
      callsPerSecond: calls / taken,
      p50: latencies.percentile(50) / 1e6,
      p99: latencies.percentile(99) / 1e6,
      max: latencies.max / 1e6,
      clientCpuMicros: (own.user + own.system) / calls,
      redisCpuMicros: (redis.cpuSeconds * 1e6) / calls,
      redisMainCpuMicros: (redis.mainCpuSeconds * 1e6) / calls,
    },
  }
}

/** A caller's next call: with its own token, and the next item. */
async function caller(
  store: SessionStore,
  operation: Operation,
  items: number,
  random: Random,
): Promise<() => Promise<unknown>> {
  const token = store.issueToken()
  const nextItem = items === 1 ? () => 'item' : skewedItems(items, random)
  if (operation === 'update-token') return () => store.updateToken(token, 'user', nextItem())
  await store.updateToken(token, 'user')
  return () => store.recordView(token, nextItem())
}

/** The views of all items, as the store counts them. */
async function countViews({ url }: RedisServer): Promise<number> {
  const tokens = { secrets: [newSecret()] }
  const store = createSessionStore({ url, strategy: 'sequential', tokens, janitor: false })
  try {
    await store.ready()
    const popular = await store.popularItems(1_000)
    return popular.reduce((sum, { views }) => sum + views, 0)
  } finally {
    await store.close()
  }
}
