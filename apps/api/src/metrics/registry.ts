import { performance } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Registry } from 'prom-client'

/**
 * Creates the registry of one process: prom-client's default metrics (CPU, memory, garbage collection, event
 * loop delay) and the active time of its event loop.
 */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Counter({
    name: 'onetrip_event_loop_active_seconds_total',
    help: 'Time that the event loop was not idle. Its rate: 0 is idle, 1 is saturated',
    registers: [registry],
    // A counter, because a utilization since the last scrape would be wrong with two scrapers.
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().active / 1000)
    },
  })
  return registry
}
