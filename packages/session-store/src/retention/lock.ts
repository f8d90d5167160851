import { randomUUID } from 'node:crypto'
import { type Command, type Operation, scoreOf } from '../command.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../redis/runner.ts'
import type { CheckedTime } from './check-clock.ts'

/** How long other processes wait after a working janitor has died. */
const LOCK_MS = 30_000

/** KEYS: janitor. ARGV: owner, lifetime. `allow-oom`: the janitor must work when memory is full, because it frees memory. */
const HOLD = `#!lua flags=allow-oom
-- hold lock
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

const RELEASE = `-- release lock
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

/**
 * KEYS: janitorTasks. ARGV: task, now, period, and how far in the future the last start may be, in seconds. Returns
 * 1 if the task is due, 2 if it was never started before, else 0. A start further in the future comes from a process
 * with a wrong clock.
 */
const BEGIN = `#!lua flags=allow-oom
-- begin task
local begun = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
local age = begun and tonumber(ARGV[2]) - begun
if age and age < tonumber(ARGV[3]) and age >= -tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return begun and 1 or 2`

const script = (text: string, key: string, ...args: Command[1][]): Operation<number> => ({
  commands: [['EVAL', text, 1, key, ...args]],
  readOnly: false,
  read: ([reply]) => Number(reply),
})

/**
 * A lock for one worker at a time, over all processes: a key with a random owner, which expires after its holder has
 * died. Keys: janitor.
 *
 * It only avoids duplicate work; correctness does not depend on it. A worker that was suspended for longer may do
 * one more step while its successor works: every step checks again what it removes.
 */
export class Lock {
  readonly #runner: Runner
  readonly #key: string
  readonly #owner = randomUUID()

  constructor(runner: Runner, keys: Keys) {
    this.#runner = runner
    this.#key = keys.janitor()
  }

  /** Acquires or renews the lock. Returns false if another worker holds it. */
  async hold(): Promise<boolean> {
    return (await this.#runner.run(script(HOLD, this.#key, this.#owner, LOCK_MS))) === 1
  }

  /** Releases the lock if this worker still holds it. */
  async release(): Promise<void> {
    await this.#runner.run(script(RELEASE, this.#key, this.#owner))
  }
}

/**
 * Marks a task as started now, unless any process started it less than `everySeconds` ago. The mark comes before
 * the work, so that a task that is interrupted is not repeated in the same period. Returns whether the task is due;
 * undefined if it was never started before. Keys: janitorTasks.
 */
export function beginTask(
  keys: Keys,
  task: 'rescale' | 'sweep',
  everySeconds: number,
  { now, maxAhead }: CheckedTime,
): Operation<boolean | undefined> {
  const operation = script(BEGIN, keys.janitorTasks(), task, scoreOf(now), everySeconds, maxAhead)
  return { ...operation, read: ([reply]) => (reply === 2 ? undefined : reply === 1) }
}
