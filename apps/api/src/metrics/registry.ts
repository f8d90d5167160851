import { performance } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Registry } from 'prom-client'

/**
 * What each process serves, whether it is the only one or a worker: prom-client's defaults (CPU,
 * memory, garbage collection, delay of the event loop) and how busy its event loop is.
 *
 * Every metric here and in this folder can be merged over processes by prom-client's
 * `AggregatorRegistry`, by the `aggregator` that it names (default: the sum).
 */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Counter({
    name: 'onetrip_event_loop_active_seconds_total',
    help: 'Time that the event loop was not idle: its rate is the share of a core, 1 is saturated',
    registers: [registry],
    // A counter and not a utilization since the last time, which two readers would spoil each other.
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().active / 1000)
    },
  })
  return registry
}
