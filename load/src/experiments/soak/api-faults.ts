import { setTimeout as delay } from 'node:timers/promises'
import { Problem } from '@onetrip/stack/problem.ts'
import { until } from '@onetrip/stack/until.ts'
import type { ApiReading } from './readings.ts'
import type { Fault } from './redis.ts'

const CLOCK_BACK_MS = 3_000
const REPLACED_WITHIN_MS = 30_000

/** The faults of the API. @param apis the last reading of each of its processes. */
export const apiFaults = (apis: ReadonlyMap<string, ApiReading>): readonly Fault[] => [
  {
    name: 'a worker killed',
    async run() {
      // Always the second worker, because the resources of the first one are measured for the whole run.
      const pid = apis.get('2')?.pid
      if (pid === undefined) throw new Problem('The API has no second worker.')
      process.kill(pid, 'SIGKILL')
      const isReplaced = () => apis.get('2')?.pid !== pid
      if (await until(isReplaced, { timeoutMs: REPLACED_WITHIN_MS })) return
      throw new Problem('The API did not replace the killed worker within 30 s.')
    },
  },
  {
    name: "the API's clock 30 s back for 3 s",
    async run() {
      const step = () => {
        for (const { pid } of apis.values()) process.kill(pid, 'SIGWINCH')
      }
      step()
      await delay(CLOCK_BACK_MS)
      step()
    },
  },
]
