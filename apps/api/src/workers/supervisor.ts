import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { settlesWithin } from '../settles-within.ts'
import { MergedMetrics } from './merged-metrics.ts'
import { NUMBER_VARIABLE, type ToPrimary, type ToWorker } from './messages.ts'
import { type PrimaryMetrics, primaryMetrics } from './primary-metrics.ts'

export interface SupervisorOptions {
  /** How many workers to keep running. */
  workers: number
  /** How long workers may take to end before they are killed. */
  graceMs: number
  log: FastifyBaseLogger
}

/** A worker that listened for so long is replaced at once, any other after a delay that doubles. */
const PROVEN_AFTER_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 10_000

/** The place of a worker, which outlives it. */
interface Place {
  readonly number: number
  worker: Worker | undefined
  listeningSince: number | undefined
  /** Deaths in a row of workers that had not proven themselves. */
  failures: number
}

/**
 * The primary process: starts the workers, replaces those that die, and ends all of them. (That none of
 * them outlives a primary that was killed is Node's doing: it ends a worker whose primary is gone.)
 */
export class Supervisor {
  readonly #places: readonly Place[]
  readonly #graceMs: number
  readonly #log: FastifyBaseLogger
  readonly #own: PrimaryMetrics
  readonly #metrics: MergedMetrics
  readonly #start = Promise.withResolvers<void>()
  readonly #ready = new Set<Worker>()
  readonly #stopping = new AbortController()
  #serving = false

  constructor({ workers, graceMs, log }: SupervisorOptions) {
    this.#places = Array.from({ length: workers }, (_, index) => ({
      number: index + 1,
      worker: undefined,
      listeningSince: undefined,
      failures: 0,
    }))
    this.#graceMs = graceMs
    this.#log = log
    this.#own = primaryMetrics(() => this.#listening.length)
    this.#metrics = new MergedMetrics(this.#own.collect)
  }

  /**
   * Resolves when all workers listen.
   *
   * @throws Error with the reason of the first worker that could not serve.
   */
  async start(): Promise<void> {
    process.once('exit', () => this.#kill())
    // All workers accept from one listening socket. With Node's default, round robin, the primary accepts
    // and passes each connection on; one on its way to a worker that dies is never closed or answered.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    for (const place of this.#places) this.#fork(place)
    await this.#start.promise
    this.#serving = true
  }

  /**
   * Lets the workers finish what they have begun.
   *
   * @throws Error when some had to be killed.
   */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const ended = this.#workers.map((worker) => {
      worker.process.kill('SIGTERM')
      return once(worker, 'exit')
    })
    if (await settlesWithin(Promise.all(ended), this.#graceMs)) return
    const number = this.#workers.length
    this.#kill()
    await Promise.all(ended)
    throw new Error(`${number} of the workers did not end in time and were killed`)
  }

  get #workers(): Worker[] {
    return this.#places.flatMap(({ worker }) => worker ?? [])
  }

  get #listening(): Place[] {
    return this.#places.filter(({ listeningSince }) => listeningSince !== undefined)
  }

  #kill(): void {
    for (const worker of this.#workers) worker.process.kill('SIGKILL')
  }

  #fork(place: Place): void {
    const worker = cluster.fork({ [NUMBER_VARIABLE]: String(place.number) })
    place.worker = worker
    let reason: string | undefined
    worker.on('message', (message: ToPrimary) => {
      if (message.kind === 'failed') reason = message.reason
      else if (message.kind === 'ready') this.#letListen(worker)
      else if (message.kind === 'collected') this.#metrics.take(worker, message.metrics)
      else void this.#answerMerged(worker, message.request)
    })
    worker.once('listening', () => {
      place.listeningSince = performance.now()
      const { number } = place
      this.#log.info({ worker: number, workerPid: worker.process.pid }, 'a worker is listening')
      if (this.#listening.length === this.#places.length) this.#start.resolve()
    })
    worker.once('exit', (code, signal) => {
      place.worker = undefined
      this.#metrics.retire(worker)
      if (!this.#stopping.signal.aborted) {
        void this.#replace(place, reason ?? `it ended with ${signal ?? `exit code ${code}`}`)
      }
    })
  }

  /** At the start, all workers listen at the same time: the first would accept the connections of all. */
  #letListen(worker: Worker): void {
    this.#ready.add(worker)
    if (!this.#serving && this.#ready.size < this.#places.length) return
    // One that died in between is noticed as it exits.
    for (const ready of this.#ready) ready.send({ kind: 'listen' } satisfies ToWorker, () => {})
    this.#ready.clear()
  }

  async #replace(place: Place, reason: string): Promise<void> {
    if (!this.#serving) {
      this.#start.reject(new Error(reason))
      return
    }
    const { number, listeningSince = Number.POSITIVE_INFINITY } = place
    const proven = performance.now() - listeningSince >= PROVEN_AFTER_MS
    place.listeningSince = undefined
    place.failures = proven ? 0 : place.failures + 1
    const delayMs = proven ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (place.failures - 1), MAX_DELAY_MS)
    this.#own.restarts.inc()
    this.#log.error({ worker: number, reason, delayMs }, 'a worker has died and is replaced')
    await delay(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
    if (!this.#stopping.signal.aborted) this.#fork(place)
  }

  async #answerMerged(worker: Worker, request: number): Promise<void> {
    const text = await this.#metrics.text(this.#workers).catch((err: unknown) => {
      this.#log.error({ err }, 'the metrics of the workers cannot be merged')
      return null
    })
    // It may have ended by now.
    worker.send({ kind: 'merged', request, text } satisfies ToWorker, () => {})
  }
}
