import { setTimeout as delay } from 'node:timers/promises'
import type { RedisMonitor, RedisReading } from '@onetrip/stack/redis-info.ts'
import { type ApiReading, readApi } from './api-metrics.ts'
import { readMachineCpu, shareElsewhere } from './machine-cpu.ts'

/** What some work took. */
export interface Usage {
  /** Differences of the counters between the beginning and the end of the run. */
  redis: RedisReading
  api: ApiReading
  /**
   * Share of this machine's CPU time, 0 to 1, that went elsewhere during the run: to programs that
   * are no part of it, or to other guests of the same host. Null where the platform does not tell.
   */
  elsewhere: number | null
}

interface Measured {
  /** Of the API. */
  url: string
  monitor: RedisMonitor
  signal: AbortSignal
}

/**
 * Has an API do some work and reads, before and after, what that took.
 *
 * @param ownCpuSeconds the CPU time of whoever asked for it.
 * @throws Problem when the API or Redis do not tell; what `work` throws; the reason of `signal`.
 */
export async function usageOf<T>(
  { url, monitor, signal }: Measured,
  work: () => Promise<T>,
  ownCpuSeconds: (result: T) => number,
): Promise<{ result: T; used: Usage }> {
  const [redisBefore, apiBefore] = await Promise.all([monitor.read(), readApi(url)])
  const machineBefore = await readMachineCpu()
  const result = await work()
  const machineAfter = await readMachineCpu()
  signal.throwIfAborted()
  const redisAfter = await settled(monitor)
  const redis = redisUsed(redisBefore, redisAfter)
  const api = apiUsed(apiBefore, await readApi(url))
  const ownSeconds = ownCpuSeconds(result) + api.cpuSeconds + redis.cpuSeconds
  const elsewhere = shareElsewhere(machineBefore, machineAfter, ownSeconds)
  return { result, used: { redis, api, elsewhere } }
}

/**
 * The counters once they stand still: the API goes on with the requests that were in flight when
 * the generator stopped, and they belong to the run.
 */
async function settled(monitor: RedisMonitor): Promise<RedisReading> {
  const deadline = performance.now() + 2_000
  let reading = await monitor.read()
  for (;;) {
    await delay(50)
    const next = await monitor.read()
    if (next.commands === reading.commands || performance.now() > deadline) return next
    reading = next
  }
}

function redisUsed(before: RedisReading, after: RedisReading): RedisReading {
  const main =
    before.mainThreadCpuSeconds === null || after.mainThreadCpuSeconds === null
      ? null
      : after.mainThreadCpuSeconds - before.mainThreadCpuSeconds
  return {
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    mainThreadCpuSeconds: main,
    connections: after.connections - before.connections,
    commands: after.commands - before.commands,
    reads: after.reads - before.reads,
  }
}

function apiUsed(before: ApiReading, after: ApiReading): ApiReading {
  return {
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    residentBytes: after.residentBytes, // a level, not a counter
    roundTrips: after.roundTrips - before.roundTrips,
    commands: after.commands - before.commands,
    connections: after.connections - before.connections,
  }
}
