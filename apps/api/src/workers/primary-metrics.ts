import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { ProcessMetrics } from './messages.ts'

export interface PrimaryMetrics {
  readonly restarts: Counter
  collect(): Promise<ProcessMetrics>
}

/** Default metrics of the primary that make sense as a sum over all processes: CPU and memory. */
const SUMMED = /^(process_cpu_|process_resident_memory_bytes$)/

export function primaryMetrics(listening: () => number): PrimaryMetrics {
  const registry = new Registry()
  const processRegistry = new Registry()
  collectDefaultMetrics({ register: processRegistry })
  new Gauge({
    name: 'onetrip_workers',
    help: 'Worker processes that listen',
    registers: [registry],
    collect() {
      this.set(listening())
    },
  })
  return {
    restarts: new Counter({
      name: 'onetrip_worker_restarts_total',
      help: 'Worker processes that exited unexpectedly and were replaced',
      registers: [registry],
    }),
    async collect() {
      const process = await processRegistry.getMetricsAsJSON()
      return [
        ...(await registry.getMetricsAsJSON()),
        ...process.filter(({ name }) => SUMMED.test(name)),
      ]
    },
  }
}
