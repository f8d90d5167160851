import type { Metric, Registry } from 'prom-client'

/** One series of a histogram: to be kept where values are observed, so that nothing is looked up. */
export interface Observer {
  observe(value: number): void
}

export interface HistogramOptions {
  name: string
  help: string
  /** Upper bounds of the buckets, ascending, without infinity. */
  bounds: readonly number[]
}

export interface Histogram {
  /** The series with these labels: always call it with the same ones in the same order. */
  series(labels?: Record<string, string>): Observer
}

/**
 * A histogram whose `observe` only counts. prom-client's builds and looks up a string of labels each
 * time, also on a child that `labels()` returned: 310 ns instead of 6 (prom-client 15.1.3, 2026-11-21).
 * Over the processes of a cluster its buckets add up, as prom-client's do.
 */
export function createHistogram(registry: Registry, options: HistogramOptions): Histogram {
  const { name, help, bounds } = options
  const all = new Map<string, Series>()

  const metric = {
    name,
    get: async () => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: [...all.values()].flatMap((series) => samplesOf(name, series)),
    }),
    reset: () => all.clear(),
  }
  // A registry asks no more than this of a metric; the type names prom-client's own classes.
  registry.registerMetric(metric as unknown as Metric)

  return {
    series(labels = {}) {
      const key = JSON.stringify(labels)
      let series = all.get(key)
      if (!series) {
        series = new Series(labels, bounds)
        all.set(key, series)
      }
      return series
    },
  }
}

class Series implements Observer {
  readonly labels: Record<string, string>
  readonly bounds: readonly number[]
  /** Not cumulative; the last is for what is beyond all bounds. */
  readonly counts: Float64Array
  sum = 0

  constructor(labels: Record<string, string>, bounds: readonly number[]) {
    this.labels = labels
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket++
    this.counts[bucket] = (this.counts[bucket] as number) + 1
    this.sum += value
  }
}

function samplesOf(name: string, { labels, bounds, counts, sum }: Series) {
  let count = 0
  const buckets = Array.from(counts, (inBucket, index) => {
    count += inBucket
    const le = String(bounds[index] ?? '+Inf')
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
