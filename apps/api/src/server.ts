import cluster from 'node:cluster'
import { loadConfig } from './config.ts'
import { serve } from './serve.ts'
import { processCount, supervise } from './workers/supervise.ts'
import { lineToPrimary } from './workers/worker.ts'

const primary = cluster.isWorker ? lineToPrimary() : undefined

try {
  const config = loadConfig()
  const processes = processCount(config.WORKERS)
  if (primary || processes === 1) await serve(config, primary)
  else await supervise(config, processes)
} catch (error) {
  const { message, cause } = error as Error
  const reason =
    cause instanceof Error ? ` (${cause.message || (cause as { code?: string }).code})` : ''
  // Of many workers that cannot start for the same reason, the primary tells one.
  if (primary) await primary.failed(`${message}${reason}`)
  else process.stderr.write(`The API cannot start: ${message}${reason}\n`)
  process.exit(1)
}
