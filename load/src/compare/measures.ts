import type { Sample } from '../http/sample.ts'
import type { LatencySample } from '../latency/result.ts'
import type { Measure, MeasureOf } from './comparable.ts'

/** Of requests at full speed. */
export const saturationMeasures: readonly MeasureOf<Sample>[] = [
  {
    ...{ name: 'requests/s', better: 'higher', kind: 'pace', least: 0.1 },
    of: (sample) => sample.requestsPerSecond,
  },
  { ...milliseconds('p99'), of: ({ latency }) => latency.p99 },
  perRequest('API CPU µs', 'cpu', 1, 'apiCpuMicros'),
  perRequest('Redis CPU µs', 'cpu', 1, 'redisCpuMicros'),
  perRequest('round trips', 'count', 0.05, 'roundTrips'),
  perRequest('commands', 'count', 0.05, 'commands'),
  perRequest('connections', 'count', 0.01, 'connections'),
]

/** Of requests at a fixed rate. */
export const latencyMeasures: readonly MeasureOf<LatencySample>[] = [
  { ...milliseconds('p50'), of: ({ latency }) => latency.p50 },
  { ...milliseconds('p99'), of: ({ latency }) => latency.p99 },
  { ...micros('API', 'request'), of: ({ perRequest }) => perRequest.apiCpuMicros },
  { ...micros('Redis', 'request'), of: ({ perRequest }) => perRequest.redisCpuMicros },
]

function milliseconds(percentile: string): Measure {
  return { name: `${percentile} ms`, better: 'lower', kind: 'pace', least: 0.01 }
}

function micros(whose: string, per: string): Measure {
  return { name: `${whose} CPU µs /${per}`, better: 'lower', kind: 'cpu', least: 1 }
}

function perRequest(
  what: string,
  kind: Measure['kind'],
  least: number,
  field: keyof Sample['perRequest'],
): MeasureOf<Sample> {
  return {
    ...{ name: `${what} /request`, better: 'lower', kind, least },
    of: (sample) => sample.perRequest[field],
  }
}
