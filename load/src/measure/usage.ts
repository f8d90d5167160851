import { setTimeout as delay } from 'node:timers/promises'
import type { RedisMonitor, RedisReading } from '@onetrip/stack/redis-info.ts'
import { readApi } from './api-metrics.ts'

/** What some work took. */
interface Usage {
  redis: { cpuSeconds: number; connections: number; commands: number }
  api: { cpuSeconds: number; roundTrips: number }
}

/**
 * Has a generator send requests to an API, and reads before and after what that took.
 *
 * @throws Problem when the API or Redis do not report; what `work` throws; the reason of `signal`.
 */
export async function usageOf<Result>(
  { url, monitor, signal }: { url: string; monitor: RedisMonitor; signal: AbortSignal },
  work: () => Promise<Result>,
): Promise<{ result: Result; used: Usage }> {
  const [redisBefore, apiBefore] = await Promise.all([monitor.read(), readApi(url)])
  const result = await work()
  signal.throwIfAborted()
  const redisAfter = await settled(monitor)
  const apiAfter = await readApi(url)
  const redis = {
    cpuSeconds: redisAfter.cpuSeconds - redisBefore.cpuSeconds,
    connections: redisAfter.connections - redisBefore.connections,
    commands: redisAfter.commands - redisBefore.commands,
  }
  const api = {
    cpuSeconds: apiAfter.cpuSeconds - apiBefore.cpuSeconds,
    roundTrips: apiAfter.roundTrips - apiBefore.roundTrips,
  }
  return { result, used: { redis, api } }
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
