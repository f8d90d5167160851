import type { Worker } from 'node:cluster'
import { AggregatorRegistry } from 'prom-client'
import { settlesWithin } from '../settles-within.ts'
import type { ProcessMetrics, ToWorker } from './messages.ts'

/** If a worker does not reply in this time, its last reply is used. */
const REPLY_TIMEOUT_MS = 1_000

/**
 * Merges the metrics of all processes.
 *
 * prom-client's `clusterMetrics` fails when a worker is slow or exits, and drops the counts of exited
 * workers, so sums decrease and rates jump. Here the sums include the counters of exited workers, as of their
 * last reply.
 */
export class MergedMetrics {
  readonly #own: () => Promise<ProcessMetrics>
  readonly #last = new Map<Worker, ProcessMetrics>()
  readonly #awaited = new Map<Worker, () => void>()
  readonly #retired = new WeakSet<Worker>()
  /** Counters of exited workers. */
  #exited: ProcessMetrics = []
  #collecting: Promise<string> | undefined

  /** @param own Metrics of the primary. */
  constructor(own: () => Promise<ProcessMetrics>) {
    this.#own = own
  }

  /** Prometheus's text format. Concurrent calls share one collection. */
  text(workers: readonly Worker[]): Promise<string> {
    this.#collecting ??= this.#collect(workers).finally(() => {
      this.#collecting = undefined
    })
    return this.#collecting
  }

  /**
   * Takes the reply of a worker. Ignores a reply that is read after `retire`, which has counted the worker.
   */
  take(worker: Worker, metrics: ProcessMetrics): void {
    if (this.#retired.has(worker)) return
    this.#last.set(worker, metrics)
    this.#awaited.get(worker)?.()
  }

  /**
   * Keeps the counters of an exited worker. Not those with another aggregator than the sum: they are values
   * read from Redis, which the other processes report.
   */
  retire(worker: Worker): void {
    this.#retired.add(worker)
    const counted = (this.#last.get(worker) ?? []).filter(
      ({ type, aggregator }) =>
        ['counter', 'histogram'].includes(String(type)) && aggregator === 'sum',
    )
    this.#exited = [...this.#exited, ...counted]
    this.#last.delete(worker)
    this.#awaited.get(worker)?.()
  }

  async #collect(workers: readonly Worker[]): Promise<string> {
    const replies = workers.map((worker) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#awaited.set(worker, resolve)
      worker.send({ kind: 'collect' } satisfies ToWorker, (error) => error && resolve())
      return promise
    })
    await settlesWithin(Promise.all(replies), REPLY_TIMEOUT_MS)
    this.#awaited.clear()
    this.#exited = await AggregatorRegistry.aggregate([this.#exited]).getMetricsAsJSON()
    const all = [await this.#own(), this.#exited, ...this.#last.values()]
    return await AggregatorRegistry.aggregate(all).metrics()
  }
}
