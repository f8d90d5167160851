import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { createHistogram, type Histogram, type Observer } from './histogram.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the requests of this route are counted in. */
    durations?: RouteDurations
  }
}

/** Closest around 2 ms, the limit of the alert; 0.25 ms is what an idle machine takes for a view. */
const BOUNDS_SECONDS = [
  0.00025, 0.0005, 0.00075, 0.001, 0.0015, 0.00175, 0.002, 0.00225, 0.0025, 0.003, 0.004, 0.005,
  0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2,
]

/** The durations of one route, a series for each status that occurred. */
class RouteDurations {
  readonly #histogram: Histogram
  readonly #labels: { method: string; route: string }
  readonly #byStatus: (Observer | undefined)[] = []

  constructor(histogram: Histogram, labels: { method: string; route: string }) {
    this.#histogram = histogram
    this.#labels = labels
  }

  record(status: number, milliseconds: number): void {
    let series = this.#byStatus[status]
    if (series === undefined) {
      series = this.#histogram.series({ ...this.#labels, status: String(status) })
      this.#byStatus[status] = series
    }
    series.observe(milliseconds / 1000)
  }
}

/**
 * Counts every answer by route and status, never by URL: whatever is asked for, there are no more
 * series than routes times statuses. To be called before the routes are added.
 */
export function measureRequests(app: FastifyInstance, registry: Registry): void {
  const histogram = createHistogram(registry, {
    name: 'http_request_duration_seconds',
    help: 'From the head of a request to its answer, by route and status; its count is the requests',
    bounds: BOUNDS_SECONDS,
  })
  const unmatched = new RouteDurations(histogram, { method: 'OTHER', route: 'unmatched' })
  app.addHook('onRoute', (route) => {
    // Several methods: those that a path has not, answered with 405.
    const method = typeof route.method === 'string' ? route.method : 'OTHER'
    const labels = { method, route: route.url }
    route.config = { ...route.config, durations: new RouteDurations(histogram, labels) }
  })
  app.addHook('onResponse', (request, reply, done) => {
    const durations = request.routeOptions.config.durations ?? unmatched
    durations.record(reply.statusCode, reply.elapsedTime)
    done()
  })
}
