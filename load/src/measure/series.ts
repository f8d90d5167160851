import type { SpeedSample } from '@onetrip/stack/measure/speed.ts'
import type { Series } from '../experiment/shape.ts'

/** Converts samples to the format of a result. */
export const seriesOf = (samples: readonly SpeedSample[]): Series => ({
  second: samples.map(({ atMs }) => atMs / 1_000),
  requestsPerSecond: samples.map((sample) => sample.requestsPerSecond),
  p99: samples.map(({ p99Ms }) => p99Ms),
})
