import { randomUUID } from 'node:crypto'
import type { Command, Operation } from '../command.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../redis/runner.ts'
import type { CheckedTime } from './clock-check.ts'

/** Lets a script run when memory is full: the janitor must work then, because it frees memory. */
const FLAGS = '#!lua flags=allow-oom'

const ACQUIRE = `${FLAGS}
-- acquire lock
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`

const RENEW = `${FLAGS}
-- renew lock
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1`

const RELEASE = `-- release lock
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

/**
 * KEYS: janitorTasks. ARGV: task, now, period, and how far in the future the last start may be, in seconds. Returns
 * 1 if the task is due, 2 if it was never started before, else 0. A start further in the future comes from a process
 * with a wrong clock.
 */
const BEGIN = `${FLAGS}
-- begin task
local begun = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
local age = begun and tonumber(ARGV[2]) - begun
if age and age < tonumber(ARGV[3]) and age >= -tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return begun and 1 or 2`

/** Returns whether the script replied 1, which means success. */
const script = (text: string, key: string, ...args: Command[1][]): Operation<boolean> => ({
  commands: [['EVAL', text, 1, key, ...args]],
  readOnly: false,
  read: ([reply]) => reply === 1,
})

export interface JanitorLock {
  /** Acquires the lock. Returns false if another worker holds it. */
  acquire(): Promise<boolean>
  /** Whether this worker still holds the lock. Renews it after a third of its lifetime. */
  held(): Promise<boolean>
  /** Releases the lock if this worker still holds it. */
  release(): Promise<void>
}

/**
 * A lock for one worker at a time, over all processes: a key with a random owner. It expires `lockSeconds` after
 * its holder has died.
 *
 * It only avoids duplicate work; correctness does not depend on it. A worker that was suspended for longer may do
 * one more step while its successor works: every step checks again what it removes.
 *
 * Keys: janitor.
 */
export function janitorLock(runner: Runner, keys: Keys, lockSeconds: number): JanitorLock {
  const key = keys.janitor()
  const owner = randomUUID()
  const expiryMs = Math.ceil(lockSeconds * 1000)
  let renewedAt = 0
  return {
    async acquire() {
      renewedAt = performance.now()
      return await runner.run(script(ACQUIRE, key, owner, expiryMs))
    },
    async held() {
      if (performance.now() - renewedAt < expiryMs / 3) return true
      renewedAt = performance.now()
      return await runner.run(script(RENEW, key, owner, expiryMs))
    },
    async release() {
      await runner.run(script(RELEASE, key, owner))
    },
  }
}

/**
 * Marks a task as started now, unless any process started it less than `everySeconds` ago. The mark comes before
 * the work, so that a task that is interrupted is not repeated in the same period. Returns whether the task is
 * due; undefined if it was never started before. Keys: janitorTasks.
 */
export function beginTask(
  keys: Keys,
  { task, everySeconds }: { task: 'rescale' | 'sweep'; everySeconds: number },
  { seconds, maxAhead }: CheckedTime,
): Operation<boolean | undefined> {
  const operation = script(BEGIN, keys.janitorTasks(), task, seconds, everySeconds, maxAhead)
  return { ...operation, read: ([reply]) => (reply === 2 ? undefined : reply === 1) }
}
