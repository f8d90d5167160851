import type { StrategyName } from '@onetrip/session-store'
import { samplesOf, type Taken } from '../redis/rounds.ts'
import { pairwiseRatios, type Summary, summarize } from '../statistics.ts'
import type { CallsRun } from './calls.ts'

/** What is compared over one link. */
export interface Contestant {
  strategy: StrategyName
  poolSize: number
  ioThreads: number
}

/** All runs of one contestant over one link: medians, with the range, over the rounds. */
export interface StoreRow extends Contestant {
  callsPerSecond: Summary
  /** Milliseconds. */
  p50: Summary
  p99: Summary
  /** Microseconds per call. */
  clientCpuMicros: Summary
  redisCpuMicros: Summary
  redisMainCpuMicros: Summary
  /** Of all rounds. */
  calls: number
  /** Calls/s as a multiple of the reference, round by round; null for the reference itself. */
  ratio: Summary | null
}

/**
 * What a contestant is compared with: where only strategies differ, the one of a round trip per command
 * (else the first); where pools or threads differ, the same strategy with the first of each.
 */
export function referenceOf(
  contestants: readonly Contestant[],
  one: Contestant,
): Contestant | undefined {
  const [first] = contestants
  const sameSetting = contestants.every(
    ({ poolSize, ioThreads }) => poolSize === first?.poolSize && ioThreads === first.ioThreads,
  )
  if (!sameSetting) return contestants.find(({ strategy }) => strategy === one.strategy)
  return contestants.find(({ strategy }) => strategy === 'sequential') ?? first
}

/** @throws RangeError when a contestant has no samples. */
export function summarizeCalls(
  contestants: readonly Contestant[],
  taken: readonly Taken<Contestant, CallsRun>[],
): StoreRow[] {
  const rates = (one: Contestant) =>
    samplesOf(taken, one).map(({ callsPerSecond }) => callsPerSecond)
  return contestants.map((one) => {
    const runs = samplesOf(taken, one)
    const over = (value: (run: CallsRun) => number) => summarize(runs.map(value))
    const reference = referenceOf(contestants, one)
    return {
      ...one,
      callsPerSecond: over(({ callsPerSecond }) => callsPerSecond),
      p50: over(({ latency }) => latency.p50),
      p99: over(({ latency }) => latency.p99),
      clientCpuMicros: over(({ clientCpuMicros }) => clientCpuMicros),
      redisCpuMicros: over(({ redisCpuMicros }) => redisCpuMicros),
      redisMainCpuMicros: over(({ redisMainCpuMicros }) => redisMainCpuMicros),
      calls: runs.reduce((sum, { calls }) => sum + calls, 0),
      ratio:
        reference === undefined || reference === one
          ? null
          : summarize(pairwiseRatios(rates(one), rates(reference))),
    }
  })
}
