import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { settlesWithin } from '../settles-within.ts'
import { MergedMetrics } from './merged-metrics.ts'
import { NUMBER_VARIABLE, type ToPrimary, type ToWorker } from './messages.ts'
import { type PrimaryMetrics, primaryMetrics } from './primary-metrics.ts'

interface SupervisorOptions {
  /** Number of workers to keep running. */
  workers: number
  /** How long workers may take to exit before they are killed, in milliseconds. */
  graceMs: number
  log: FastifyBaseLogger
}

/** A worker that has listened for this long is replaced at once, any other after a delay that doubles. */
const STABLE_AFTER_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 10_000

/** A worker or its replacement. */
interface Slot {
  readonly number: number
  worker: Worker | undefined
  listeningSince: number | undefined
  /** Consecutive exits of workers that had not listened for `STABLE_AFTER_MS`. */
  failures: number
}

/**
 * Runs in the primary process: starts the workers, replaces those that exit, and stops all of them. If the
 * primary is killed, Node ends its workers.
 */
export class Supervisor {
  readonly #slots: readonly Slot[]
  readonly #graceMs: number
  readonly #log: FastifyBaseLogger
  readonly #own: PrimaryMetrics
  readonly #metrics: MergedMetrics
  readonly #start = Promise.withResolvers<void>()
  readonly #ready = new Set<Worker>()
  readonly #stopping = new AbortController()
  #serving = false

  constructor({ workers, graceMs, log }: SupervisorOptions) {
    this.#slots = Array.from({ length: workers }, (_, index) => ({
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
   * Starts the workers. Resolves when all of them listen.
   *
   * @throws Error with the reason of the first worker that could not start.
   */
  async start(): Promise<void> {
    process.once('exit', () => this.#kill())
    // All workers accept from one listening socket. With Node's default (round robin) the primary accepts
    // each connection and passes it on; a connection on its way to a worker that exits is never answered or
    // closed.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    for (const slot of this.#slots) this.#fork(slot)
    await this.#start.promise
    this.#serving = true
  }

  /**
   * Shuts the workers down gracefully.
   *
   * @throws Error if workers had to be killed.
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
    throw new Error(`${number} workers did not end in time and were killed`)
  }

  get #workers(): Worker[] {
    return this.#slots.flatMap(({ worker }) => worker ?? [])
  }

  get #listening(): Slot[] {
    return this.#slots.filter(({ listeningSince }) => listeningSince !== undefined)
  }

  #kill(): void {
    for (const worker of this.#workers) worker.process.kill('SIGKILL')
  }

  #fork(slot: Slot): void {
    const worker = cluster.fork({ [NUMBER_VARIABLE]: String(slot.number) })
    slot.worker = worker
    let reason: string | undefined
    worker.on('message', (message: ToPrimary) => {
      if (message.kind === 'failed') reason = message.reason
      else if (message.kind === 'ready') this.#letListen(worker)
      else if (message.kind === 'collected') this.#metrics.take(worker, message.metrics)
      else void this.#answerMerged(worker, message.request)
    })
    worker.once('listening', () => {
      slot.listeningSince = performance.now()
      const { number } = slot
      this.#log.info({ worker: number, workerPid: worker.process.pid }, 'worker is listening')
      if (this.#listening.length === this.#slots.length) this.#start.resolve()
    })
    const ended = (why: string) => {
      slot.worker = undefined
      this.#metrics.retire(worker)
      if (!this.#stopping.signal.aborted) void this.#replace(slot, why)
    }
    worker.once('exit', (code, signal) => {
      ended(reason ?? `worker ended with ${signal ?? `exit code ${code}`}`)
    })
    // A process that could not be started, for example beyond the limit of processes, never emits 'exit'.
    worker.on('error', (err) => {
      if (worker.process.pid === undefined) ended(`worker could not be started: ${err.message}`)
      else this.#log.warn({ err, worker: slot.number }, 'a message to a worker was lost')
    })
  }

  /**
   * At startup, all workers listen at the same time. Otherwise the first one would accept all connections.
   */
  #letListen(worker: Worker): void {
    this.#ready.add(worker)
    if (!this.#serving && this.#ready.size < this.#slots.length) return
    // Errors are ignored: a worker that has died emits 'exit'.
    for (const ready of this.#ready) ready.send({ kind: 'listen' } satisfies ToWorker, () => {})
    this.#ready.clear()
  }

  async #replace(slot: Slot, reason: string): Promise<void> {
    if (!this.#serving) {
      this.#start.reject(new Error(reason))
      return
    }
    const { number, listeningSince = Number.POSITIVE_INFINITY } = slot
    const stable = performance.now() - listeningSince >= STABLE_AFTER_MS
    slot.listeningSince = undefined
    slot.failures = stable ? 0 : slot.failures + 1
    const delayMs = stable ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (slot.failures - 1), MAX_DELAY_MS)
    this.#own.restarts.inc()
    this.#log.error({ worker: number, reason, delayMs }, 'worker died; starting a replacement')
    await delay(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
    if (!this.#stopping.signal.aborted) this.#fork(slot)
  }

  async #answerMerged(worker: Worker, request: number): Promise<void> {
    const text = await this.#metrics.text(this.#workers).catch((err: unknown) => {
      this.#log.error({ err }, 'the metrics of the workers cannot be merged')
      return null
    })
    // Errors are ignored: the worker may have exited.
    worker.send({ kind: 'merged', request, text } satisfies ToWorker, () => {})
  }
}
