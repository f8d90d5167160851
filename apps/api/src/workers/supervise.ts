import { availableParallelism } from 'node:os'
import closeWithGrace from 'close-with-grace'
import { pino } from 'pino'
import type { Config } from '../config.ts'
import { loggerOptions, standardOutput } from '../logging.ts'
import { Supervisor } from './supervisor.ts'

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
export async function supervise(config: Config, workers: number): Promise<void> {
  const terminal = process.stdout.isTTY
  const options = loggerOptions(config.LOG_LEVEL, terminal)
  const log = terminal ? pino(options) : pino(options, standardOutput())
  const graceMs = config.SHUTDOWN_DRAIN_MS + config.SHUTDOWN_GRACE_MS + MARGIN_MS
  const supervisor = new Supervisor({ workers, graceMs, log })
  // No time limit here: the supervisor kills workers after `graceMs`.
  closeWithGrace({ delay: false, logger: log }, async ({ err }) => {
    if (err) log.fatal({ err }, 'shutting down after an unexpected error')
    await supervisor.stop()
  })
  await supervisor.start()
}
