import { availableParallelism } from 'node:os'
import closeWithGrace from 'close-with-grace'
import { pino } from 'pino'
import type { Config } from '../config.ts'
import { loggerOptions, standardOutput } from '../logging.ts'
import { Supervisor } from './supervisor.ts'

/** How many processes `WORKERS` means. */
export function processCount(workers: string): number {
  return workers === 'auto' ? availableParallelism() : Number(workers)
}

/** Beyond what a worker gives itself to end. */
const MARGIN_MS = 1_000

/**
 * Serves the API from several processes on one port, until this one is told to stop.
 *
 * @throws Error with the reason of the first worker that cannot start.
 */
export async function supervise(config: Config, workers: number): Promise<void> {
  const terminal = process.stdout.isTTY
  const options = loggerOptions(config.LOG_LEVEL, terminal)
  const log = terminal ? pino(options) : pino(options, standardOutput())
  const graceMs = config.SHUTDOWN_DRAIN_MS + config.SHUTDOWN_GRACE_MS + MARGIN_MS
  const supervisor = new Supervisor({ workers, graceMs, log })
  // The supervisor has its own limit, after which it kills.
  closeWithGrace({ delay: false, logger: log }, async ({ err }) => {
    if (err) log.fatal({ err }, 'ending after an unexpected error')
    await supervisor.stop()
  })
  await supervisor.start()
}
