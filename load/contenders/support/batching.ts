import type { Command, Outcome, Update } from '@onetrip/session-store'
import { merge } from '../../../packages/session-store/src/merge.ts'

const MAX_UPDATES = 16

interface Waiting {
  update: Update<unknown>
  resolve(outcomes: Outcome[]): void
  reject(error: unknown): void
}

/**
 * The batching of our strategy `batch` (packages/session-store/src/strategies/batch.ts) for another
 * client: the updates of one turn of the event loop, at most 16 at a time, merged into variadic
 * commands and sent together.
 */
export function batching(
  send: (commands: readonly Command[]) => Promise<Outcome[]>,
): (update: Update<unknown>) => Promise<Outcome[]> {
  let queue: Waiting[] = []
  let scheduled: NodeJS.Immediate | undefined

  const flush = () => {
    clearImmediate(scheduled)
    scheduled = undefined
    const callers = queue
    queue = []
    const batch = merge(callers.map(({ update }) => update))
    send(batch.commands).then(
      (outcomes) => {
        const own = batch.split(outcomes)
        callers.forEach((caller, index) => void caller.resolve(own[index] ?? []))
      },
      (error: unknown) => {
        for (const caller of callers) caller.reject(error)
      },
    )
  }

  return (update) =>
    new Promise((resolve, reject) => {
      queue.push({ update, resolve, reject })
      if (queue.length >= MAX_UPDATES) flush()
      else scheduled ??= setImmediate(flush)
    })
}
