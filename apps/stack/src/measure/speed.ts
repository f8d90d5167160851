import { latencyHistogram, record, summaryOf } from './latencies.ts'

/** Throughput and latency since the previous sample. */
export interface SpeedSample {
  /** Time since the start. */
  atMs: number
  /** Only 2xx responses. */
  requestsPerSecond: number
  /** Null without responses. */
  p99Ms: number | null
}

interface SamplerOptions {
  /** Start time, on the clock of `performance.now()`. */
  startedAt: number
  everyMs: number
  /** Returns the number of 2xx responses so far. */
  answered: () => number
  onSample: (sample: SpeedSample) => void
}

/** Calls `onSample` until `stop()`. The last interval counts if it has at least half the normal length. */
export function sampleSpeed({ startedAt, everyMs, answered, onSample }: SamplerOptions) {
  const latencies = latencyHistogram()
  let [since, before] = [startedAt, answered()]
  const sample = () => {
    const now = performance.now()
    onSample({
      atMs: now - startedAt,
      requestsPerSecond: ((answered() - before) * 1_000) / (now - since),
      p99Ms: summaryOf(latencies).p99,
    })
    since = now
    before = answered()
    latencies.reset()
  }
  let timer: NodeJS.Timeout | undefined = setInterval(sample, everyMs)
  return {
    record: (milliseconds: number) => record(latencies, milliseconds),
    stop() {
      if (!timer) return
      clearInterval(timer)
      timer = undefined
      if (performance.now() - since >= everyMs / 2) sample()
    },
  }
}
