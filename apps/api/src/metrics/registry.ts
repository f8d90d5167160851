import { performance } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

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
    help: 'Time that event loops were not idle: its rate by process is a share, 1 is saturated',
    registers: [registry],
    // A counter and not a utilization since the last time, which two readers would spoil each other.
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().active / 1000)
    },
  })
  new Gauge({
    name: 'onetrip_processes',
    help: 'Processes that serve requests and are measured here: what shares are shares of',
    registers: [registry],
  }).set(1)
  return registry
}
