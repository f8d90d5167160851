import { merge } from '../../../packages/session-store/src/merge.ts'
import type { Outcome } from '../../../packages/session-store/src/outcomes.ts'
import type { Command, Update } from '../../../packages/session-store/src/updates.ts'

const MOST_UPDATES = 16

interface Waiting {
  update: Update<unknown>
  resolve(outcomes: Outcome[]): void
  reject(error: unknown): void
}

/**
 * The batching of our `batch` strategy for another client: all updates of one turn of the event loop,
 * at most 16 at a time, merged into variadic commands and sent together.
 */
export function batching(
  send: (commands: readonly Command[]) => Promise<Outcome[]>,
): (update: Update<unknown>) => Promise<Outcome[]> {
  const waiting: Waiting[] = []

  const flush = () => {
    while (waiting.length > 0) {
      const callers = waiting.splice(0, MOST_UPDATES)
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
  }

  return (update) =>
    new Promise((resolve, reject) => {
      if (waiting.push({ update, resolve, reject }) === 1) setImmediate(flush)
    })
}
