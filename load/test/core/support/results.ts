import { ioThreads } from '../../../src/experiments/io-threads/io-threads.ts'
import type { SavedResult } from '../../../src/reporting/files.ts'
import { resultOf, runsOf } from '../../support/result.ts'

/** A result with line charts and figures of the source articles. */
export function ioThreadsResult(): SavedResult {
  const samples = ['GET', 'MGET'].flatMap((command) =>
    [1, 2, 4].flatMap((threads) =>
      runsOf(
        { command, bytes: 64, pipeline: 1, build: 'patched', threads },
        {
          ...{ perSecond: [100_000 * threads, 110_000 * threads], p99: [1, 2] },
          ...{ mainCpuMicros: [9 / threads, 8 / threads], cpuMicros: [9, 8] },
          ...{ below1: [0.99, 0.98], above2: [0.001, 0.002] },
        },
        threads > 2 ? { doubts: ['crowded'] } : {},
      ),
    ),
  )
  return { name: 'io-threads.json', experiment: ioThreads, result: resultOf(ioThreads, samples) }
}
