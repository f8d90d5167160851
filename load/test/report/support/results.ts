import type { Variant } from '../../../src/contenders.ts'
import type {
  LatencyResult,
  LatencySample,
  LatencySummary,
  Percentiles,
} from '../../../src/latency/result.ts'
import type { ExperimentResult } from '../../../src/redis/result.ts'
import { updateTokenFigures } from '../../../src/store/documents.ts'
import { httpResult } from '../../support/http-results.ts'

// Results that are plausible in every field; what a test is about, it changes.

const { machine, git, redis, clients } = httpResult({ naive: [1], batch: [1] })
const date = '2026-11-21T10:00:00.000Z'

const summary = (median: number) => ({ median, min: median * 0.9, max: median * 1.1 })

const shares = [0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999]

const percentiles = (ms: number): Percentiles => ({
  ...{ p50: ms, p75: ms * 1.4, p90: ms * 2, p99: ms * 6, p999: ms * 15, p9999: null },
})

function latencySummary(variant: Variant, rate: number, share: number, ms: number) {
  const each = percentiles(ms)
  const row: LatencySummary = {
    ...{ variant, rate, share, due: 5_000, ok: 5_000, notSent: 0, errors: {} },
    latency: { ...each, max: ms * 20, mean: ms * 1.3 },
    rounds: {
      ...{ p50: summary(ms), p75: summary(ms), p90: summary(ms * 2), p99: summary(ms * 6) },
      ...{ p999: summary(ms * 15), p9999: null },
    },
    curve: shares.map((at) => ({ share: at, ms: ms * (0.7 + (1 / (1 - at)) ** 0.45) })),
    longestLine: 3,
    pacer: { lateness: { p50: 0.05, p99: 0.2, max: 1 }, utilization: 0.3 },
    perRequest: {
      ...{ generatorCpuMicros: summary(30), apiCpuMicros: summary(40) },
      redisCpuMicros: summary(10),
    },
    ...{ doubts: [], elsewhere: 0.01 },
  }
  return row
}

export function latencyResult(): LatencyResult {
  const rates = [
    { share: 0.3, requestsPerSecond: 900 },
    { share: 0.7, requestsPerSecond: 2_100 },
  ]
  const summaries = rates.flatMap(({ share, requestsPerSecond: rate }) => [
    latencySummary('naive', rate, share, 4 + share * 4),
    latencySummary('batch', rate, share, 0.6),
  ])
  const samples = summaries.map(
    ({ variant, rate, due, ok, notSent, errors, latency, longestLine, pacer }): LatencySample => ({
      ...{ variant, rate, due, ok, notSent, errors, latency, longestLine, pacer },
      ...{ round: 1, seconds: 5, elsewhere: 0.01 },
      perRequest: { generatorCpuMicros: 30, apiCpuMicros: 40, redisCpuMicros: 10 },
    }),
  )
  return {
    format: 'onetrip-load-latency/1',
    ...{ date, command: 'npm run load -- latency', git, machine, stack: 'own', redis, clients },
    ...{ poolSize: 1, workers: 1, generator: 'pacer of undici 8.12.4', interrupted: false },
    options: {
      ...{ variants: ['naive', 'batch'], connections: 64, duration: 5, rounds: 1, warmup: 2 },
      ...{ arrivals: 'even', items: 1_000, seed: 17 },
      ...{ workload: 'realistic', sessions: 64, reads: 0.2 },
    },
    capacity: {
      ...{ generator: 'autocannon 9.0.0', slowest: 'naive' },
      requestsPerSecond: { naive: summary(3_000), batch: summary(40_000) },
    },
    ...{ rates, summaries, samples },
  }
}

export function experimentResult(change: Partial<ExperimentResult> = {}): ExperimentResult {
  return {
    format: 'onetrip-load-redis/1',
    ...{ experiment: 'info', summary: 'what INFO costs', date, git, machine },
    ...{ command: 'npm run load -- redis info', elsewhere: 0.01, network: 'shared' },
    limits: {
      ...{ descriptors: 20_000, somaxconn: 4_096, ports: '32768-60999', reuseTimeWait: 2 },
      ...{ timeWaitBuckets: 131_072, trackedConnections: 0 },
    },
    options: { rounds: 3, duration: 1 },
    servers: [{ ...redis, config: {} }],
    documents: updateTokenFigures,
    tables: [
      { title: 'One client asks', head: ['beside', 'CPU of\nRedis'], rows: [['10', '1.5']] },
    ],
    conclusions: ['INFO costs 83 times as much.'],
    ...change,
  }
}
