import type { Worker } from 'node:cluster'
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { settlesWithin } from '../settles-within.ts'
import type { Ask } from './requests.ts'

type ProcessMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** If a worker does not reply in this time, its last reply is used. */
const REPLY_TIMEOUT_MS = 1_000

/** Metrics of the primary. Of the default ones only those that make sense as a sum over all processes. */
const OWN = /^(onetrip_|process_cpu_|process_resident_memory_bytes$)/

/**
 * Merges the metrics of all processes.
 *
 * prom-client's `clusterMetrics` fails when a worker is slow or exits, and drops the counts of exited
 * workers, so sums decrease and rates jump. Here the sums include the counters of exited workers, as of their
 * last reply.
 */
export class MergedMetrics {
  readonly restarts: Counter
  readonly #own = new Registry()
  readonly #last = new Map<Worker, ProcessMetrics>()
  readonly #exited: ProcessMetrics = []
  #collecting: Promise<string> | undefined

  constructor(listening: () => number) {
    const registers = [this.#own]
    collectDefaultMetrics({ register: this.#own })
    new Gauge({
      name: 'onetrip_workers',
      help: 'Worker processes that listen',
      registers,
      collect() {
        this.set(listening())
      },
    })
    this.restarts = new Counter({
      name: 'onetrip_worker_restarts_total',
      help: 'Worker processes that exited unexpectedly and were replaced',
      registers,
    })
  }

  /** Prometheus's text format. Concurrent calls share one collection. */
  text(workers: ReadonlyMap<Worker, Ask>): Promise<string> {
    this.#collecting ??= this.#collect(workers).finally(() => {
      this.#collecting = undefined
    })
    return this.#collecting
  }

  /**
   * Keeps the counters of an exited worker. Not those with another aggregator than the sum: they are values
   * read from Redis, which the other processes report.
   */
  retire(worker: Worker): void {
    const counted = (this.#last.get(worker) ?? []).filter(
      ({ type, aggregator }) =>
        ['counter', 'histogram'].includes(String(type)) && aggregator === 'sum',
    )
    this.#exited.push(...counted)
    this.#last.delete(worker)
  }

  async #collect(workers: ReadonlyMap<Worker, Ask>): Promise<string> {
    const replies = [...workers].map(async ([worker, ask]) => {
      const metrics = (await ask('collect')) as ProcessMetrics
      if (workers.has(worker)) this.#last.set(worker, metrics) // else it was retired meanwhile
    })
    await settlesWithin(Promise.allSettled(replies), REPLY_TIMEOUT_MS)
    const exited = AggregatorRegistry.aggregate([this.#exited.splice(0)])
    this.#exited.push(...(await exited.getMetricsAsJSON()))
    const own = await this.#own.getMetricsAsJSON()
    return await AggregatorRegistry.aggregate([
      own.filter(({ name }) => OWN.test(name)),
      this.#exited,
      ...this.#last.values(),
    ]).metrics()
  }
}
