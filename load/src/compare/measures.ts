import type { Sample } from '../http/sample.ts'

/** A figure by which two results are compared. */
export interface Measure {
  name: string
  better: 'higher' | 'lower'
  /**
   * What else it depends on. `pace`: on how fast the machine is just now, so it is judged as a multiple of
   * what a reference reached in the same round. `cpu`: on the processor. `count`: on neither.
   */
  kind: 'pace' | 'cpu' | 'count'
  /** Below this the figure counts as this: next to nothing is no multiple of next to nothing. */
  least: number
  /** Null where the sample has none. */
  of: (sample: Sample) => number | null
}

export const measures: readonly Measure[] = [
  {
    ...{ name: 'requests/s', better: 'higher', kind: 'pace', least: 0.1 },
    of: (sample) => sample.requestsPerSecond,
  },
  {
    ...{ name: 'p99 ms', better: 'lower', kind: 'pace', least: 0.01 },
    of: ({ latency }) => latency.p99,
  },
  perRequest('API CPU µs', 'cpu', 1, 'apiCpuMicros'),
  perRequest('Redis CPU µs', 'cpu', 1, 'redisCpuMicros'),
  perRequest('round trips', 'count', 0.05, 'roundTrips'),
  perRequest('commands', 'count', 0.05, 'commands'),
  perRequest('connections', 'count', 0.01, 'connections'),
]

function perRequest(
  what: string,
  kind: Measure['kind'],
  least: number,
  field: keyof Sample['perRequest'],
): Measure {
  return {
    ...{ name: `${what} /request`, better: 'lower', kind, least },
    of: (sample) => sample.perRequest[field],
  }
}
