import { randomUUID } from 'node:crypto'
import type { Keys } from '../keys.ts'
import type { Runner } from '../runner.ts'
import type { Command, Update } from '../updates.ts'

/**
 * These scripts write less than they make room for, so they run in a full memory too: a janitor that
 * cannot get its lock there could never help.
 */
const FLAGS = '#!lua flags=allow-oom'

const ACQUIRE = `${FLAGS}
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`

const RENEW = `${FLAGS}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1`

const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

/** Field of `janitorTasks`: the state of a migration, as `migration/state.ts` describes it. */
export const MIGRATION = 'migration'
export const FINISHED = 'finished'

/** Counts are not halved while they move: both stores would halve the same views. */
const BEGIN = `${FLAGS}
local migration = redis.call('HGET', KEYS[1], '${MIGRATION}')
if ARGV[1] == 'rescale' and migration and migration ~= '${FINISHED}' then return 0 end
local begun = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if begun and tonumber(ARGV[2]) < begun + tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return begun and 1 or 2`

/** Reads whether the script did what it is for. */
const script = (text: string, key: string, ...args: Command[1][]): Update<boolean> => ({
  commands: [['EVAL', text, 1, key, ...args]],
  readOnly: false,
  read: ([reply]) => reply === 1,
})

export interface JanitorLock {
  /** Takes the lock. False when another worker has it. */
  acquire(): Promise<boolean>
  /** Whether it still is this worker's; renews it when a third of its time is over. */
  held(): Promise<boolean>
  /** Gives it back, if it still is this worker's. */
  release(): Promise<void>
}

/**
 * A lock for one worker at a time, over all processes: a key with a random owner and an expiry, so that
 * it outlives the death of its holder by `lockSeconds` at the most.
 *
 * It saves work; nothing leans on it. A worker that was stopped for longer than that, and does one more
 * step beside its successor, does no harm, since every step checks by itself what it removes.
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
 * Marks a task as begun now, unless it was begun less than `everySeconds` ago, by whichever process.
 * Marked before it is done, so that a task that dies in the middle is not done twice in a period.
 * Reads whether it is due; undefined when it was never begun before. Keys: janitorTasks.
 */
export function beginTask(
  keys: Keys,
  { task, everySeconds }: { task: 'rescale' | 'sweep'; everySeconds: number },
  now: number,
): Update<boolean | undefined> {
  const update = script(BEGIN, keys.janitorTasks(), task, now, everySeconds)
  return { ...update, read: ([reply]) => (reply === 2 ? undefined : reply === 1) }
}
