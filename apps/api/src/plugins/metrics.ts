import { connectionChannel, type RoundTrip, roundTripChannel } from '@onetrip/session-store'
import fp from 'fastify-plugin'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Serves `GET /metrics`: the process (CPU, memory, event loop) and what the store did. */
export const metricsPlugin = fp<{ transport: string }>(
  async (app, { transport }) => {
    const registry = new Registry()
    const registers = [registry]
    collectDefaultMetrics({ register: registry })
    new Gauge({
      name: 'onetrip_info',
      help: 'Which variant of the API this is',
      labelNames: ['strategy', 'transport'],
      registers,
    }).set({ strategy: app.store.strategy, transport }, 1)
    const counter = (name: string, help: string) => new Counter({ name, help, registers })
    const roundTrips = counter('onetrip_store_round_trips_total', 'Round trips of updates to Redis')
    const commands = counter('onetrip_store_commands_total', 'Commands of updates sent to Redis')
    const connections = counter(
      'onetrip_store_connections_opened_total',
      'Connections to Redis that were opened',
    )
    const errors = new Counter({
      name: 'onetrip_store_errors_total',
      help: 'Errors of the store, by code',
      labelNames: ['code'],
      registers,
    })

    const onRoundTrip = (message: unknown) => {
      roundTrips.inc()
      commands.inc((message as RoundTrip).commands)
    }
    const onConnection = () => connections.inc()
    roundTripChannel.subscribe(onRoundTrip)
    connectionChannel.subscribe(onConnection)
    app.addHook('onClose', async () => {
      roundTripChannel.unsubscribe(onRoundTrip)
      connectionChannel.unsubscribe(onConnection)
    })
    app.addHook('onError', async (_request, reply, error) => {
      if (reply.statusCode >= 500 || 'mayHaveWritten' in error) errors.inc({ code: error.code })
    })

    app.get('/metrics', { logLevel: 'warn' }, async (_request, reply) =>
      reply.type(registry.contentType).send(await registry.metrics()),
    )
  },
  { name: 'metrics', dependencies: ['store'] },
)
