import fp from 'fastify-plugin'
import { Gauge, type Registry } from 'prom-client'
import { createRegistry } from '../metrics/registry.ts'
import { measureRequests } from '../metrics/requests.ts'
import { measureStore } from '../metrics/store.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Metrics of this process; plugins may add to it. */
    metrics: Registry
  }
}

interface MetricsOptions {
  /** Transport of the store's connections: `tcp`, `tls` or `unix`. */
  transport: string
  /** `single`, `cluster` or `sentinel`. */
  topology: string
  poolSize?: number | undefined
}

/** Measures requests and the store. Register it before the routes. */
export const metricsPlugin = fp<MetricsOptions>(
  async (app, { transport, topology, poolSize }) => {
    const registry = createRegistry()
    app.decorate('metrics', registry)
    new Gauge({
      name: 'onetrip_info',
      help: 'Configuration of the API, in the labels',
      labelNames: ['strategy', 'transport', 'topology', 'pool_size'],
      registers: [registry],
    }).set(
      {
        strategy: app.store.info.sender,
        transport,
        topology,
        ...(poolSize !== undefined && { pool_size: poolSize }),
      },
      1,
    )
    const stopMeasuring = measureStore(app.store, registry)
    app.addHook('onClose', async () => stopMeasuring())
    measureRequests(app, registry)
  },
  { name: 'metrics', dependencies: ['@onetrip/session-store'] },
)
