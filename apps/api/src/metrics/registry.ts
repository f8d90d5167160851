import { performance } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/**
 * Creates the registry of one process: prom-client's default metrics (CPU, memory, garbage collection, event
 * loop delay) and the active time of its event loop.
 *
 * prom-client's `AggregatorRegistry` can merge all metrics in this folder over processes. Their `aggregator`
 * says how (default: sum).
 */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Counter({
    name: 'onetrip_event_loop_active_seconds_total',
    help: 'Time that event loops were not idle. Rate per process: 0 is idle, 1 is saturated',
    registers: [registry],
    // A counter, because a utilization since the last scrape would be wrong with two scrapers.
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().active / 1000)
    },
  })
  new Gauge({
    name: 'onetrip_processes',
    help: 'Processes that serve requests. Divide a summed rate by it for a value per process',
    registers: [registry],
  }).set(1)
  return registry
}
