import { setTimeout as delay } from 'node:timers/promises'
import { Problem } from '@onetrip/stack/problem.ts'
import { until } from '@onetrip/stack/until.ts'
import type { SoakStack } from './stack.ts'

/** Longer than an update may take, so that outcomes are unknown. */
const PAUSE_MS = 3_000
const CLOCK_BACK_MS = 3_000
const REPLACED_WITHIN_MS = 30_000

interface Fault {
  readonly name: string
  /** Causes it, and puts right what does not heal by itself: never interrupted in between. */
  run(stack: SoakStack): Promise<void>
}

export const faults: readonly Fault[] = [
  {
    name: 'Redis killed and restarted',
    run: (stack) => stack.restartRedis(),
  },
  {
    name: 'connections cut within a reply',
    async run({ relay }) {
      const cut = relay.event('connection cut')
      await relay.command('cut replies 100')
      await cut
    },
  },
  {
    name: 'a worker killed',
    async run({ apis }) {
      // Always the second one: the first is there from the start to the end, and is measured.
      const pid = apis.get('2')?.pid
      if (pid === undefined) throw new Problem('The API has no second worker.')
      process.kill(pid, 'SIGKILL')
      const isReplaced = () => apis.get('2')?.pid !== pid
      if (await until(isReplaced, { timeoutMs: REPLACED_WITHIN_MS })) return
      throw new Problem('The worker that was killed was not replaced within 30 s.')
    },
  },
  {
    name: 'Redis paused for 3 s',
    async run({ redisProgram }) {
      redisProgram.signal('SIGSTOP')
      await delay(PAUSE_MS)
      redisProgram.signal('SIGCONT')
    },
  },
  {
    name: "the API's clock 30 s back for 3 s",
    async run({ apis }) {
      const step = () => {
        for (const { pid } of apis.values()) process.kill(pid, 'SIGWINCH')
      }
      step()
      await delay(CLOCK_BACK_MS)
      step()
    },
  },
]
