import { memberScores, type Operation, scoreOf } from '../command.ts'
import { settledBefore } from '../sessions/list.ts'
import { endAndForget } from '../sessions/log-out.ts'
import type { RetentionContext, TaskStep } from './context.ts'

interface Oldest {
  readonly sessions: readonly (readonly [id: string, lastSeen: number])[]
  /** The number of all sessions in the set. */
  readonly size: number
}

/** The `limit` least recently seen sessions, oldest first. Keys: recent. */
export const oldestSessions = (recent: string, limit: number): Operation<Oldest> => ({
  commands: [
    ['ZRANGE', recent, 0, limit - 1, 'WITHSCORES'],
    ['ZCARD', recent],
  ],
  readOnly: true,
  read: ([reply, size]) => ({ sessions: memberScores(reply), size: Number(size) }),
})

/**
 * Ends the sessions of each part that are idle or beyond its share of the maximum, oldest first, batch by batch.
 *
 * A concurrent page view either finds the session gone, or refreshes it before the script, which then keeps it. So a
 * worker that acts late on old readings does no harm. A session without a login is a login in progress until it is
 * settled. If the maximum ends a session between the two commands of a `writeSession`, only its login may remain:
 * `checkToken` rejects it, and the sweep removes it.
 */
export async function* evict(context: RetentionContext): AsyncGenerator<TaskStep> {
  const { runner, keys, now, maxSessions, idleSeconds, batchSize } = context
  const parts = keys.parts()
  const keep = Math.ceil(Math.min(maxSessions, Number.MAX_SAFE_INTEGER) / parts.length)
  for (const { recent } of parts) {
    for (;;) {
      const { sessions, size } = await runner.run(oldestSessions(recent, batchSize))
      const idleBefore = Math.max(0, scoreOf(now()) - idleSeconds) // JSON has no infinity
      const due = sessions.filter(([, seen], rank) => rank < size - keep || seen < idleBefore)
      if (due.length === 0) break
      const oldest = { idleBefore, keep, seen: due.map(([, seen]) => seen) }
      const endIf = { settledBefore: settledBefore(context), oldest }
      const ids = due.map(([id]) => id)
      const evicted = await endAndForget(context, ids, endIf)
      yield { evicted, surplus: Math.max(0, size - evicted - keep) }
      if (evicted === 0) break // all of them were refreshed meanwhile; the next run checks again
    }
  }
}
