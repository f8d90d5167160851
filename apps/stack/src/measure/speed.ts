import { latencyHistogram, record, summaryOf } from './latencies.ts'

/** What was answered since the last sample. */
export interface SpeedSample {
  /** Since the start. */
  atMs: number
  /** Answers with 2xx only. */
  requestsPerSecond: number
  /** Null when nothing was answered. */
  p99Ms: number | null
}

interface SamplerOptions {
  /** Of `performance.now()`. */
  startedAt: number
  everyMs: number
  /** How many answers with 2xx there are so far. */
  answered: () => number
  onSample: (sample: SpeedSample) => void
}

/** Calls `onSample` until it is stopped; the last part counts if it is at least half as long as the others. */
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
