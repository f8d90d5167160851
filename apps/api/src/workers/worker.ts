import type { Registry } from 'prom-client'
import { requests } from './requests.ts'

/**
 * Environment variable with the worker's number, from 1. A replacement gets the number of its predecessor.
 */
export const NUMBER_VARIABLE = 'ONETRIP_WORKER'

export type PrimaryChannel = ReturnType<typeof primaryChannel>

/** IPC from a worker to the primary. Call it once per worker. */
export function primaryChannel() {
  let registry: Registry | undefined
  const ask = requests(process, { collect: () => registry?.getMetricsAsJSON() ?? [] })
  return {
    /** True in one worker, which does the tasks that only one process has to do. */
    isFirst: process.env[NUMBER_VARIABLE] === '1',
    /** Reports that everything but the port is ready. Resolves when the worker may listen. */
    mayListen: () => ask('mayListen'),
    /** Reports why this worker cannot serve. */
    failed: (reason: string) => ask('failed', reason),
    /** Includes the metrics of this process; returns a function that returns the merged metrics as text. */
    mergeMetrics(own: Registry) {
      registry = own
      return async () => {
        const text = await ask('metrics')
        if (typeof text === 'string') return text
        throw new Error('the metrics of the workers cannot be merged')
      }
    },
  }
}
