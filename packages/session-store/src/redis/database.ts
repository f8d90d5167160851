import type { Redis } from 'ioredis'
import { databaseRefused, retryDelayMs } from './client.ts'
import { isRefusal } from './outcomes.ts'

/** Whether the connection of an injected client is in the client's database. */
export interface DatabaseCheck {
  readonly isSelected: boolean
  /** Why the database could not be selected. */
  readonly refusal: Error | undefined
  /** Call it when a connection is ready. */
  start(): void
  /** Call it when a connection is lost, and at the end. */
  stop(): void
}

/**
 * Selects the database of an injected client again when a connection is ready: ioredis uses a connection whose
 * database was refused. If Redis refuses again, the client stays as it is, and the check is repeated until Redis allows
 * the database.
 *
 * @param stalledAfterMs A connection that has not replied for so long is closed.
 */
export function checkDatabase(redis: Redis, stalledAfterMs: number): DatabaseCheck {
  let isSelected = needsNoSelect(redis)
  let refusal: Error | undefined
  let current = 0
  let late: NodeJS.Timeout | undefined
  let next: NodeJS.Timeout | undefined

  async function select(check: number, refusals: number): Promise<void> {
    const { stream } = redis
    const database = redis.condition?.select ?? 0
    late = setTimeout(() => stream.destroy(new Error('no reply to SELECT')), stalledAfterMs)
    const error = await redis.select(database).then(
      () => undefined,
      (reason: Error) => (isRefusal(reason) ? databaseRefused(database, reason) : reason),
    )
    if (check !== current) return
    clearTimeout(late)
    if (redis.status !== 'ready') return
    isSelected = error === undefined
    refusal = error
    if (error) next = setTimeout(select, retryDelayMs(refusals), check, refusals + 1)
  }

  function stop(): void {
    current++
    clearTimeout(late)
    clearTimeout(next)
    isSelected = needsNoSelect(redis)
    refusal = undefined
  }

  return {
    get isSelected() {
      return isSelected
    },
    get refusal() {
      return refusal
    },
    start() {
      stop()
      if (!isSelected) void select(current, 0)
    },
    stop,
  }
}

/** Each connection begins in database 0. `condition` contains what the application has selected since. */
const needsNoSelect = ({ options, condition }: Redis): boolean => !options.db && !condition?.select
