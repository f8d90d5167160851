import { Problem } from '@onetrip/stack/problem.ts'
import type { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import type { Variant } from '../contenders.ts'
import type { Progress, Saturate, Saturation } from '../drivers/http/generator.ts'
import type { Call } from '../drivers/http/workload.ts'
import { type Usage, usageOf } from '../measure/usage.ts'
import { errorKinds, figure } from '../table.ts'

/** One run of one variant. */
export interface Sample extends Omit<Saturation, 'bytes'>, Usage {
  /** Null in files of an older format. */
  bytes: Saturation['bytes'] | null
  variant: Variant
  /** 1 for the first round. */
  round: number
  /** Answers with 2xx per second. */
  requestsPerSecond: number
  /** What was used, per request that reached the API. */
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

/** In a few words, for the progress line. */
export function describeSample({ requestsPerSecond, latency, errors }: Sample): string {
  const kinds = errorKinds(errors)
  const failed = kinds === '0' ? '' : `  errors ${kinds}`
  return `${figure(requestsPerSecond)} requests/s  p99 ${figure(latency.p99 ?? Number.NaN)} ms${failed}`
}

/**
 * @param where is told besides the variant: ` over vpn`.
 * @throws Problem when nothing succeeded.
 */
export function requireAnswers(
  { variant, ok, errors }: Pick<Sample, 'variant' | 'ok' | 'errors'>,
  where = '',
): void {
  if (ok > 0) return
  throw new Problem(
    `No request succeeded for ${variant}${where} (${errorKinds(errors)}): there is nothing to compare.`,
  )
}

/**
 * Runs a variant once at full speed and reads, before and after, what it cost.
 *
 * @throws Problem when the API or Redis do not tell; the reason of `signal`.
 */
export async function takeSample(options: SampleOptions): Promise<Sample> {
  const { variant, round, url, owned, monitor, calls, saturate, seconds, signal, onProgress } =
    options
  const { result: run, used } = await usageOf(
    { url, monitor, signal },
    () => saturate({ url, owned, calls, seconds, signal, ...(onProgress && { onProgress }) }),
    ({ generator }) => generator.cpuSeconds,
  )
  const { redis, api } = used
  const per = (amount: number) => (run.sent === 0 ? 0 : amount / run.sent)
  const perAnswer = (amount: number) => (run.answered === 0 ? 0 : amount / run.answered)
  return {
    variant,
    round,
    ...run,
    requestsPerSecond: run.ok / run.seconds,
    ...used,
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
