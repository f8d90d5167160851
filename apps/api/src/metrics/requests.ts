import type { FastifyInstance } from 'fastify'
import { Histogram, type Registry } from 'prom-client'

/** Closest around 2 ms, the limit of the alert; 0.25 ms is what an idle machine takes for a view. */
const BOUNDS_SECONDS = [
  0.00025, 0.0005, 0.00075, 0.001, 0.0015, 0.00175, 0.002, 0.00225, 0.0025, 0.003, 0.004, 0.005,
  0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2,
]

/**
 * Counts every answer by route and status, never by URL: the number of series is limited by the routes
 * and the statuses. To be called before the routes are added.
 */
export function measureRequests(app: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'From the head of a request to its answer, by route and status; its count is the requests',
    labelNames: ['method', 'route', 'status'],
    buckets: BOUNDS_SECONDS,
    registers: [registry],
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route = 'unmatched', method: methods } = request.routeOptions
    // Several methods: those that a path does not have, answered with 405. No route: 404.
    const method = route === 'unmatched' || typeof methods !== 'string' ? 'OTHER' : methods
    durations.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000)
    done()
  })
}
