import fp from 'fastify-plugin'
import { Gauge, type Registry } from 'prom-client'
import { createRegistry } from '../metrics/registry.ts'
import { measureRequests } from '../metrics/requests.ts'
import { measureStore } from '../metrics/store.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** What this process measures of itself; plugins may add to it. */
    metrics: Registry
  }
}

export interface MetricsOptions {
  /** Where the store finds Redis: `tcp`, `tls` or `unix`. */
  transport: string
  /** Default: one of its own. */
  registry?: Registry | undefined
  /** What `/metrics` serves. Default: this process's; a worker serves those of all, merged. */
  gather?: (() => Promise<string>) | undefined
}

/** Measures requests and store, and serves `GET /metrics` in Prometheus' text format. */
export const metricsPlugin = fp<MetricsOptions>(
  async (app, { transport, registry = createRegistry(), gather = () => registry.metrics() }) => {
    app.decorate('metrics', registry)
    new Gauge({
      name: 'onetrip_info',
      help: 'Which variant of the API this is',
      labelNames: ['strategy', 'transport'],
      aggregator: 'first',
      registers: [registry],
    }).set({ strategy: app.store.strategy, transport }, 1)
    const stopMeasuring = measureStore(app.store, registry)
    app.addHook('onClose', async () => stopMeasuring())
    measureRequests(app, registry)

    app.get('/metrics', { logLevel: 'warn' }, async (_request, reply) =>
      reply.type(registry.contentType).send(await gather()),
    )
  },
  { name: 'metrics', dependencies: ['store'] },
)
