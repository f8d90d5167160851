import type { Histogram, RecordableHistogram } from 'node:perf_hooks'
import type { Variant } from '../contenders.ts'
import {
  curveOf,
  figuresOf,
  isAmongFailed,
  latencyHistogram,
  percentileNames,
} from '../drivers/pacer/latencies.ts'
import { addUp, GENERATOR_LIMIT } from '../http/summary.ts'
import { type Summary, summarize } from '../statistics.ts'
import type { Doubt, LatencyRate, LatencySummary } from './result.ts'
import { type LatencyRun, latenessOf } from './sample.ts'

/** From here on a request was sent late, in milliseconds and as a share of the p99. */
const LATE_MS = 1
const LATE_SHARE = 0.2

/** What a request that failed took, as it counts. */
const FAILED = Number.POSITIVE_INFINITY

/** One for each rate and variant that has runs. */
export function summarizeLatencies(
  runs: readonly LatencyRun[],
  rates: readonly LatencyRate[],
  variants: readonly Variant[],
): LatencySummary[] {
  return rates.flatMap((rate) =>
    variants.flatMap((variant) => {
      const own = runs.filter(
        ({ sample }) => sample.variant === variant && sample.rate === rate.requestsPerSecond,
      )
      return own.length > 0 ? [summarizeRuns(own, rate, variant)] : []
    }),
  )
}

function summarizeRuns(
  runs: readonly LatencyRun[],
  { share, requestsPerSecond }: LatencyRate,
  variant: Variant,
): LatencySummary {
  const samples = runs.map(({ sample }) => sample)
  const latencies = together(runs.map((run) => run.latencies))
  const total = (value: (sample: LatencyRun['sample']) => number) =>
    samples.reduce((sum, sample) => sum + value(sample), 0)
  const over = (value: (sample: LatencyRun['sample']) => number) => summarize(samples.map(value))
  const due = total((sample) => sample.due)
  const ok = total((sample) => sample.ok)
  const latency = figuresOf(latencies, due)
  const pacer = {
    lateness: latenessOf(together(runs.map((run) => run.lateness))),
    utilization: Math.max(...samples.map((sample) => sample.pacer.utilization)),
  }
  return {
    variant,
    rate: requestsPerSecond,
    share,
    due,
    ok,
    notSent: total((sample) => sample.notSent),
    errors: addUp(samples.map(({ errors }) => errors)),
    latency,
    rounds: Object.fromEntries(
      percentileNames.map((name) => [name, known(samples.map((sample) => sample.latency[name]))]),
    ) as LatencySummary['rounds'],
    curve: curveOf(latencies, due),
    longestLine: Math.max(...samples.map(({ longestLine }) => longestLine)),
    pacer,
    perRequest: {
      generatorCpuMicros: over(({ perRequest }) => perRequest.generatorCpuMicros),
      apiCpuMicros: over(({ perRequest }) => perRequest.apiCpuMicros),
      redisCpuMicros: over(({ perRequest }) => perRequest.redisCpuMicros),
    },
    doubts: doubtsOf(pacer, isAmongFailed({ due, ok, latency }, 'p99') ? FAILED : latency.p99),
    elsewhere: Math.max(...samples.map(({ elsewhere }) => elsewhere ?? 0)),
  }
}

function together(histograms: readonly Histogram[]): Histogram {
  const all = latencyHistogram()
  // What another thread sent is the same inside, but its type knows no recording.
  for (const histogram of histograms) all.add(histogram as RecordableHistogram)
  return all
}

function known(values: readonly (number | null)[]): Summary | null {
  const numbers = values.filter((value) => value !== null)
  return numbers.length > 0 ? summarize(numbers) : null
}

/** @param p99 in milliseconds; null where too few requests are beyond it. */
export function doubtsOf(
  { lateness, utilization }: LatencySummary['pacer'],
  p99: number | null,
): Doubt[] {
  const late = lateness.p99 > LATE_MS && lateness.p99 > LATE_SHARE * (p99 ?? 0)
  return [
    ...(late ? (['pacer late'] as const) : []),
    ...(utilization >= GENERATOR_LIMIT ? (['generator at its limit'] as const) : []),
  ]
}
