import { availableParallelism } from 'node:os'
import { Problem } from './problem.ts'

/** Settings of the API that decide what is measured. */
export interface ApiSettings {
  /** Processes on the one port. */
  workers: number
  /** Connections to Redis that each of them shares. */
  poolSize: number
}

/**
 * What `WORKERS` and `REDIS_POOL_SIZE` mean to the API (apps/api/src/config.ts, which this package's
 * image does not have). APIs that are measured are given them, so that the record says what ran,
 * whatever a `.env` file has.
 *
 * @throws Problem when the API would refuse them.
 */
export function apiSettings(env: NodeJS.ProcessEnv = process.env): ApiSettings {
  const { WORKERS: workers = '1', REDIS_POOL_SIZE: poolSize = '1' } = env
  if (!/^(auto|[1-9][0-9]?)$/.test(workers)) {
    throw new Problem(`WORKERS is "${workers}": it must be auto, or a whole number from 1 to 99.`)
  }
  if (!/^\d+$/.test(poolSize) || Number(poolSize) < 1 || Number(poolSize) > 64) {
    throw new Problem(`REDIS_POOL_SIZE is "${poolSize}": it must be a whole number from 1 to 64.`)
  }
  return {
    workers: workers === 'auto' ? availableParallelism() : Number(workers),
    poolSize: Number(poolSize),
  }
}
