import { setTimeout as delay } from 'node:timers/promises'
import type { Fault } from './redis.ts'

/** A process of the API. */
export interface SoakApi {
  signal(signal: NodeJS.Signals): void
  /** Kills the process, and starts it again on the same port. */
  killAndRestart(): Promise<void>
}

const CLOCK_BACK_MS = 3_000

/** @param other the API to kill; not the one whose resources are measured. */
export const apiFaults = (measured: SoakApi, other: SoakApi): readonly Fault[] => [
  { name: 'an API killed and restarted', run: () => other.killAndRestart() },
  {
    name: "the API's clock 30 s back for 3 s",
    async run() {
      const step = () => {
        for (const api of [measured, other]) api.signal('SIGWINCH')
      }
      step()
      await delay(CLOCK_BACK_MS)
      step()
    },
  },
]
