import type { Histogram } from 'node:perf_hooks'
import type { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import type { Variant } from '../contenders.ts'
import type { Call } from '../drivers/http/workload.ts'
import type { PacedGenerator } from '../drivers/pacer/generator.ts'
import { figuresOf } from '../drivers/pacer/latencies.ts'
import type { PaceProgress } from '../drivers/pacer/pacer.ts'
import { usageOf } from '../measure/usage.ts'
import type { LatencySample } from './result.ts'

/** A sample, and what its figures were taken from. */
export interface LatencyRun {
  sample: LatencySample
  latencies: Histogram
  lateness: Histogram
}

export interface LatencyRunOptions {
  variant: Variant
  round: number
  /** Requests per second. */
  rate: number
  schedule: Float64Array
  url: string
  owned: boolean
  monitor: RedisMonitor
  calls: readonly (readonly Call[])[]
  generator: PacedGenerator
  signal: AbortSignal
  onProgress: (progress: PaceProgress) => void
}

/**
 * Runs a variant once at a fixed rate and reads, before and after, what it cost.
 *
 * @throws Problem when the API takes no connections, or does not tell; the reason of `signal`.
 */
export async function takeLatencies(options: LatencyRunOptions): Promise<LatencyRun> {
  const { variant, round, rate, schedule, url, owned, monitor, calls, generator } = options
  const { signal, onProgress } = options
  const { result: run, used } = await usageOf(
    { url, monitor, signal },
    () => generator.run({ url, owned, calls, schedule, onProgress }),
    ({ generator }) => generator.cpuSeconds,
  )
  const micros = (cpuSeconds: number) => (cpuSeconds * 1e6) / run.sent
  const { due, ok, notSent, errors, seconds, longestLine, latencies, lateness } = run
  return {
    sample: {
      variant,
      round,
      rate,
      ...{ due, ok, notSent, errors, seconds },
      latency: figuresOf(latencies, due),
      longestLine,
      pacer: {
        lateness: latenessOf(lateness),
        utilization: run.generator.utilization,
      },
      perRequest: {
        generatorCpuMicros: micros(run.generator.cpuSeconds),
        apiCpuMicros: micros(used.api.cpuSeconds),
        redisCpuMicros: micros(used.redis.cpuSeconds),
      },
      elsewhere: used.elsewhere,
    },
    latencies,
    lateness,
  }
}

/** In milliseconds; 0 where every request had to wait for a connection. */
export function latenessOf(histogram: Histogram): LatencySample['pacer']['lateness'] {
  if (histogram.count === 0) return { p50: 0, p99: 0, max: 0 }
  const at = (percentile: number) => histogram.percentile(percentile) / 1_000
  return { p50: at(50), p99: at(99), max: histogram.max / 1_000 }
}
