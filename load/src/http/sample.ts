import { setTimeout as delay } from 'node:timers/promises'
import { type ApiReading, readApi } from '../measure/api-metrics.ts'
import { readMachineCpu, shareElsewhere } from '../measure/machine-cpu.ts'
import type { RedisMonitor, RedisReading } from '../measure/redis-info.ts'
import type { Variant } from '../stack/api.ts'
import type { Progress, Saturate, Saturation } from './generator.ts'
import type { Call } from './workload.ts'

/** One run of one variant. */
export interface Sample extends Omit<Saturation, 'bytes'> {
  /** Null in files of an older format. */
  bytes: Saturation['bytes'] | null
  variant: Variant
  /** 1 for the first round. */
  round: number
  /** Answers with 2xx per second. */
  requestsPerSecond: number
  /** Differences of the counters between the beginning and the end of the run. */
  redis: RedisReading
  api: ApiReading
  /**
   * Share of this machine's CPU time, 0 to 1, that went elsewhere during the run: to programs that
   * are no part of it, or to other guests of the same host. Null where the platform does not tell.
   */
  elsewhere: number | null
  /** The same per request that reached the API. */
  perRequest: {
    /** Connections opened to Redis. */
    connections: number
    /** Redis commands, those included that a client sends of its own accord when it connects. */
    commands: number
    roundTrips: number
    /** CPU time of the generator, in microseconds. */
    generatorCpuMicros: number
    /** CPU time of the API process, in microseconds. */
    apiCpuMicros: number
    /** CPU time of the Redis process, all threads, in microseconds. */
    redisCpuMicros: number
    /** Of an answered request, over HTTP, headers included. Null in files of an older format. */
    bytesSent: number | null
    bytesReceived: number | null
  }
}

export interface SampleOptions {
  variant: Variant
  round: number
  url: string
  owned: boolean
  monitor: RedisMonitor
  calls: readonly (readonly Call[])[]
  saturate: Saturate
  seconds: number
  signal: AbortSignal
  onProgress?: (progress: Progress) => void
}

/**
 * Runs a variant once at full speed and reads, before and after, what it cost.
 *
 * @throws Problem when the API or Redis do not tell; the reason of `signal`.
 */
export async function takeSample(options: SampleOptions): Promise<Sample> {
  const { variant, round, url, owned, monitor, calls, saturate, seconds, signal, onProgress } =
    options
  const [redisBefore, apiBefore] = await Promise.all([monitor.read(), readApi(url)])
  const machineBefore = await readMachineCpu()
  const run = await saturate({
    url,
    owned,
    calls,
    seconds,
    signal,
    ...(onProgress && { onProgress }),
  })
  const machineAfter = await readMachineCpu()
  signal.throwIfAborted()
  const redisAfter = await settled(monitor)
  const apiAfter = await readApi(url)
  const redis = redisUsed(redisBefore, redisAfter)
  const api = apiUsed(apiBefore, apiAfter)
  const per = (amount: number) => (run.sent === 0 ? 0 : amount / run.sent)
  const perAnswer = (amount: number) => (run.answered === 0 ? 0 : amount / run.answered)
  return {
    variant,
    round,
    ...run,
    requestsPerSecond: run.ok / run.seconds,
    redis,
    api,
    elsewhere: shareElsewhere(
      machineBefore,
      machineAfter,
      run.generator.cpuSeconds + api.cpuSeconds + redis.cpuSeconds,
    ),
    perRequest: {
      connections: per(redis.connections),
      commands: per(redis.commands),
      roundTrips: per(api.roundTrips),
      generatorCpuMicros: per(run.generator.cpuSeconds * 1e6),
      apiCpuMicros: per(api.cpuSeconds * 1e6),
      redisCpuMicros: per(redis.cpuSeconds * 1e6),
      bytesSent: perAnswer(run.bytes.sent),
      bytesReceived: perAnswer(run.bytes.received),
    },
  }
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
