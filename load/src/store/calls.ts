import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { SessionStore } from '@onetrip/session-store'
import { type Random, seededRandom, skewedItems } from '../drivers/http/workload.ts'
import { cpuBetween } from '../drivers/redis/threads.ts'
import type { Server } from '../redis/experiment.ts'

export const operations = ['update-token', 'record-view'] as const
export type Operation = (typeof operations)[number]

export interface CallsOptions {
  operation: Operation
  /** Calls in flight at the same time, each of a session of its own. */
  concurrency: number
  /** Items that are viewed, few of them often (Zipf). */
  items: number
  seconds: number
  signal: AbortSignal
}

/** What came of calling a store's function again and again. */
export interface CallsRun {
  calls: number
  /** With those of the warm-up. */
  allCalls: number
  seconds: number
  callsPerSecond: number
  /** Milliseconds. */
  latency: { p50: number; p99: number; max: number }
  /** CPU time of this process, all threads, in microseconds per call. */
  clientCpuMicros: number
  /** CPU time of Redis, all threads, in microseconds per call. */
  redisCpuMicros: number
  /** Its main thread's part. */
  redisMainCpuMicros: number
}

const SEED = 17

/** Unmeasured calls come first, for this share of the time: a connection and a compiler warm up. */
const WARM_UP = 0.2

/**
 * Calls a function of the store, as the documents' `benchmark_update_token` does: each caller calls it
 * again as soon as it has returned, until the time is up.
 *
 * @throws what a call throws; the reason of `signal`.
 */
export async function measureCalls(
  store: SessionStore,
  server: Pick<Server, 'cpu'>,
  options: CallsOptions,
): Promise<CallsRun> {
  const { operation, concurrency, items, seconds, signal } = options
  const random = seededRandom(SEED)
  const callers = await Promise.all(
    Array.from({ length: concurrency }, () => caller(store, operation, items, random)),
  )
  const callAll = async (until: number, latencies: RecordableHistogram) => {
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
  await callAll(performance.now() + seconds * WARM_UP * 1_000, warmUp)
  const latencies = createHistogram({ figures: 3 })
  const cpuBefore = await server.cpu()
  const ownBefore = process.cpuUsage()
  const start = performance.now()
  await callAll(start + seconds * 1_000, latencies)
  const taken = (performance.now() - start) / 1_000
  const own = process.cpuUsage(ownBefore)
  const redis = cpuBetween(cpuBefore, await server.cpu())
  const calls = latencies.count
  const microsPerCall = (cpuSeconds: number) => (cpuSeconds * 1e6) / calls
  return {
    calls,
    allCalls: warmUp.count + calls,
    seconds: taken,
    callsPerSecond: calls / taken,
    latency: {
      p50: latencies.percentile(50) / 1e6,
      p99: latencies.percentile(99) / 1e6,
      max: latencies.max / 1e6,
    },
    clientCpuMicros: (own.user + own.system) / calls,
    redisCpuMicros: microsPerCall(redis.cpuSeconds),
    redisMainCpuMicros: microsPerCall(redis.mainCpuSeconds),
  }
}

/** A caller's next call: with its own token, and the item whose turn it is. */
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
