import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import type { FastifyBaseLogger } from 'fastify'
import { pino } from 'pino'
import type { Config } from '../config.ts'
import { loggerOptions, standardOutput } from '../logging.ts'
import { settlesWithin } from '../settles-within.ts'
import { MergedMetrics } from './merged-metrics.ts'
import { type Ask, requests } from './requests.ts'
import { NUMBER_VARIABLE } from './worker.ts'

/** Number of processes that `WORKERS` asks for. */
export function processCount(workers: string): number {
  return workers === 'auto' ? availableParallelism() : Number(workers)
}

/** The primary waits longer than the workers' own shutdown limit. */
const MARGIN_MS = 1_000

/**
 * Serves the API with several worker processes on one port until a shutdown signal.
 *
 * @throws Error with the reason of the first worker that cannot start.
 */
export async function supervise(config: Config, count: number): Promise<void> {
  const terminal = process.stdout.isTTY
  const options = loggerOptions(config.LOG_LEVEL, terminal)
  const log = terminal ? pino(options) : pino(options, standardOutput())
  const graceMs = config.SHUTDOWN_DRAIN_MS + config.SHUTDOWN_GRACE_MS + MARGIN_MS
  const workers = startWorkers({ count, graceMs, log })
  // No time limit here: `stop` kills workers after `graceMs`.
  closeWithGrace({ delay: false, logger: log }, async ({ err, signal }) => {
    if (err) log.fatal({ err }, 'shutting down after an unexpected error')
    else log.info({ signal }, 'shutting down')
    await workers.stop()
  })
  await workers.started
}

interface WorkersOptions {
  /** Number of workers to keep running. */
  count: number
  /** How long workers may take to exit before they are killed, in milliseconds. */
  graceMs: number
  log: FastifyBaseLogger
}

/** A worker that has listened for this long is replaced at once, any other after a delay. */
const STABLE_AFTER_MS = 10_000
const RESTART_DELAY_MS = 1_000

/** Starts the workers and replaces those that exit. If this process is killed, Node ends its workers. */
export function startWorkers({ count, graceMs, log }: WorkersOptions) {
  const workers = new Map<Worker, Ask>()
  const listening = new Set<Worker>()
  const metrics = new MergedMetrics(() => listening.size)
  const started = Promise.withResolvers<void>()
  const stopping = new AbortController()
  const ready: (() => void)[] = []
  let serving = false

  const kill = () => {
    for (const worker of workers.keys()) worker.process.kill('SIGKILL')
  }

  /** At startup, all workers listen at the same time. Otherwise the first one would accept all connections. */
  const mayListen = () =>
    new Promise<void>((resolve) => {
      ready.push(resolve)
      if (!serving && ready.length < count) return
      for (const listen of ready.splice(0)) listen()
    })

  function fork(number: number): void {
    const worker = cluster.fork({ [NUMBER_VARIABLE]: String(number) })
    let listeningSince = Number.POSITIVE_INFINITY
    let failure: unknown
    const ask = requests(worker, {
      mayListen,
      metrics: () =>
        metrics.text(workers).catch((err: unknown) => {
          log.error({ err }, 'the metrics of the workers cannot be merged')
        }),
      failed(reason) {
        failure = reason
      },
    })
    workers.set(worker, ask)
    worker.once('listening', () => {
      listeningSince = performance.now()
      listening.add(worker)
      log.info({ worker: number, workerPid: worker.process.pid }, 'worker is listening')
      if (listening.size < count) return
      serving = true
      started.resolve()
    })
    const ended = (reason: string) => {
      workers.delete(worker)
      listening.delete(worker)
      metrics.retire(worker)
      if (stopping.signal.aborted) return
      const stable = performance.now() - listeningSince >= STABLE_AFTER_MS
      if (serving) void replace(number, stable ? 0 : RESTART_DELAY_MS, reason)
      else started.reject(new Error(reason))
    }
    worker.once('exit', (code, signal) =>
      ended(String(failure ?? `worker ended with ${signal ?? `exit code ${code}`}`)),
    )
    // A process that could not be started, for example beyond the limit of processes, never emits 'exit'.
    worker.on('error', (err) => {
      if (worker.process.pid === undefined) ended(`worker could not be started: ${err.message}`)
    })
  }

  async function replace(number: number, delayMs: number, reason: string): Promise<void> {
    metrics.restarts.inc()
    log.error({ worker: number, reason, delayMs }, 'worker died; starting a replacement')
    await delay(delayMs, undefined, { signal: stopping.signal }).catch(() => {})
    if (!stopping.signal.aborted) fork(number)
  }

  process.once('exit', kill)
  // All workers accept from one listening socket. With Node's default (round robin) the primary accepts
  // each connection and passes it on; a connection on its way to a worker that exits is never answered or
  // closed.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  for (let number = 1; number <= count; number++) fork(number)

  return {
    /** Resolves when all workers listen; rejects with the reason of the first one that could not start. */
    started: started.promise,
    /** Shuts the workers down gracefully. Throws if workers had to be killed. */
    async stop(): Promise<void> {
      stopping.abort()
      const ended = [...workers.keys()].map((worker) => {
        worker.process.kill('SIGTERM')
        return once(worker, 'exit')
      })
      if (await settlesWithin(Promise.all(ended), graceMs)) return
      const { size } = workers
      kill()
      await Promise.all(ended)
      throw new Error(`${size} workers did not end in time and were killed`)
    },
  }
}
