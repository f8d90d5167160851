import type { Worker } from 'node:cluster'
import { AggregatorRegistry } from 'prom-client'
import { settlesWithin } from '../settles-within.ts'
import type { ProcessMetrics, ToWorker } from './messages.ts'

/** Of a worker that does not answer in this time, the last answer counts. */
const ANSWER_TIMEOUT_MS = 1_000

/**
 * The metrics of all processes as one text.
 *
 * prom-client's own `clusterMetrics` fails when one worker is slow or dies, and forgets what a dead one
 * had counted, so that sums go down and rates jump. Here, counters of a worker that has ended stay in
 * the sums, as of the last time that it was asked.
 */
export class MergedMetrics {
  readonly #own: () => Promise<ProcessMetrics>
  readonly #last = new Map<Worker, ProcessMetrics>()
  readonly #awaited = new Map<Worker, () => void>()
  readonly #retired = new WeakSet<Worker>()
  #ofTheDead: ProcessMetrics = []
  #collecting: Promise<string> | undefined

  /** @param own What the primary itself has to add. */
  constructor(own: () => Promise<ProcessMetrics>) {
    this.#own = own
  }

  /** In Prometheus's text format. Whoever asks while they are being collected gets the same ones. */
  text(workers: readonly Worker[]): Promise<string> {
    this.#collecting ??= this.#collect(workers).finally(() => {
      this.#collecting = undefined
    })
    return this.#collecting
  }

  /** What a worker answered; its end may be known before its last answer is read. */
  take(worker: Worker, metrics: ProcessMetrics): void {
    if (this.#retired.has(worker)) return
    this.#last.set(worker, metrics)
    this.#awaited.get(worker)?.()
  }

  /**
   * Keeps what a worker that has ended had counted of its own. What several processes read from the same
   * place (of Redis the largest value counts) is for those that live to tell.
   */
  retire(worker: Worker): void {
    this.#retired.add(worker)
    const counted = (this.#last.get(worker) ?? []).filter(
      ({ type, aggregator }) =>
        ['counter', 'histogram'].includes(String(type)) && aggregator === 'sum',
    )
    this.#ofTheDead = [...this.#ofTheDead, ...counted]
    this.#last.delete(worker)
    this.#awaited.get(worker)?.()
  }

  async #collect(workers: readonly Worker[]): Promise<string> {
    const answers = workers.map((worker) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#awaited.set(worker, resolve)
      worker.send({ kind: 'collect' } satisfies ToWorker, (error) => error && resolve())
      return promise
    })
    await settlesWithin(Promise.all(answers), ANSWER_TIMEOUT_MS)
    this.#awaited.clear()
    this.#ofTheDead = await AggregatorRegistry.aggregate([this.#ofTheDead]).getMetricsAsJSON()
    const all = [await this.#own(), this.#ofTheDead, ...this.#last.values()]
    return await AggregatorRegistry.aggregate(all).metrics()
  }
}
