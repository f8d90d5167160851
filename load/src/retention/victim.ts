import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { SessionStore } from '@onetrip/session-store'

/** What somebody saw who used the store meanwhile; milliseconds. */
export interface VictimRun {
  views: number
  p50: number
  p99: number
  max: number
}

const PAUSE_MS = 1

/**
 * Views an item about a thousand times a second, one call at a time, until `work` is done.
 *
 * @throws what `work` or a view throws.
 */
export async function viewWhile<Result>(
  store: SessionStore,
  token: string,
  work: () => Promise<Result>,
): Promise<{ result: Result; victim: VictimRun }> {
  const times = createHistogram({ figures: 3 })
  let working = true
  const done = work().finally(() => {
    working = false
  })
  const viewing = (async () => {
    while (working) {
      const start = process.hrtime.bigint()
      await store.recordView(token, 'item-0')
      times.record(process.hrtime.bigint() - start)
      await delay(PAUSE_MS)
    }
  })()
  const [result] = await Promise.all([done, viewing])
  return {
    result,
    victim: {
      views: times.count,
      p50: times.percentile(50) / 1e6,
      p99: times.percentile(99) / 1e6,
      max: times.max / 1e6,
    },
  }
}
