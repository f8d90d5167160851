import type { ExperimentResult } from '../../../src/redis/result.ts'
import type { ScalingPoint, ScalingResult } from '../../../src/scaling/result.ts'
import { updateTokenFigures } from '../../../src/store/documents.ts'
import type { StoreRow } from '../../../src/store/summary.ts'
import { httpResult, type Rates } from '../../support/http-results.ts'

// Results that are plausible in every field; what a test is about, it changes.

const { machine, git, redis, clients } = httpResult({ naive: [1], batch: [1] })
const date = '2026-11-21T10:00:00.000Z'

const summary = (median: number) => ({ median, min: median * 0.9, max: median * 1.1 })

function point(rates: Rates, setting: Partial<ScalingPoint>): ScalingPoint {
  const base = { connections: 64, workers: 1, link: 'loopback', linkText: 'loopback: TCP' }
  const { summaries } = httpResult(rates)
  return { ...base, pingMs: null, oversubscribed: false, summaries, ...setting }
}

function storeRow(strategy: StoreRow['strategy'], calls: number, ratio: number | null) {
  const row: StoreRow = {
    ...{ strategy, poolSize: 1, ioThreads: 1, callsPerSecond: summary(calls), calls: 2_000 },
    ...{ p50: summary(0.3), p99: summary(0.9), clientCpuMicros: summary(100) },
    ...{ redisCpuMicros: summary(40), redisMainCpuMicros: summary(39) },
    ratio: ratio === null ? null : summary(ratio),
  }
  return row
}

export function scalingResult(): ScalingResult {
  const connections = [1, 8, 64, 256, 1_000].map((count, index) =>
    point(
      { naive: [900 + index * 600, 950 + index * 600], batch: [6_000 + index * 8_500, 6_300] },
      { connections: count, oversubscribed: count === 1_000 },
    ),
  )
  const distance = [
    { link: 'unix', linkText: 'unix: Unix socket', pingMs: 0.015 },
    { link: 'loopback', linkText: 'loopback: TCP over loopback', pingMs: 0.04 },
    { link: 'switch', linkText: 'switch: 0.271 ms at 1 Gb/s', pingMs: 0.275 },
    { link: '1ms', linkText: '1ms: 1 ms at 1 Gb/s', pingMs: 1.01 },
    { link: 'vpn', linkText: 'vpn: 48 ms at 1.8 Mb/s', pingMs: 48.2 },
  ].map((link, index) => {
    const slower = 3 ** index
    const rate = (each: number) => [each / slower, (each * 1.1) / slower]
    return point(
      { naive: rate(3_000), sequential: rate(9_000), pipeline: rate(20_000), batch: rate(40_000) },
      link,
    )
  })
  return {
    format: 'onetrip-load-scaling/1',
    ...{ date, command: 'npm run load -- scaling', git, machine, redis, clients },
    ...{ poolSize: 1, generator: 'wrk 4.1.0', interrupted: false },
    options: {
      only: ['connections', 'distance'],
      variants: ['naive', 'sequential', 'pipeline', 'batch'],
      ...{ duration: 2, rounds: 2, warmup: 1, items: 1_000, seed: 17 },
      ...{ generator: 'wrk', workload: 'realistic', sessions: 1_000, reads: 0.2 },
    },
    series: [
      { by: 'connections', points: connections, samples: [] },
      { by: 'distance', points: distance, samples: [] },
    ],
    store: {
      links: distance.map(({ link, linkText, pingMs }) => ({
        ...{ link, linkText, pingMs: pingMs ?? 0 },
        rows: [storeRow('sequential', 3_000, null), storeRow('pipeline', 11_000, 3.6)],
      })),
      samples: [],
    },
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
