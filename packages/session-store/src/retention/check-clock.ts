import { type Operation, type Reply, scoreOf } from '../command.ts'
import { publishWarning } from '../diagnostics.ts'
import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import type { Settings } from '../options.ts'

/** KEYS: janitor, to choose one of several servers. Returns the reply to TIME; nil if the user may not run it. */
const READ_TIME = `-- read time
local time = redis.pcall('TIME')
return not time.err and time`

/** The time of Redis, Unix seconds with fraction; undefined if the user lacks the permission +time. */
const redisTime = (keys: Keys): Operation<number | undefined> => ({
  commands: [['EVAL', READ_TIME, 1, keys.janitor()]],
  readOnly: true,
  read([reply]) {
    if (reply === null) return undefined
    const [seconds, microseconds] = reply as readonly Reply[]
    return Number(seconds) + Number(microseconds) / 1e6
  },
})

const NOT_ALLOWED =
  'Redis did not allow the janitor to read its clock, so the janitor does not compare it with that of this process: add +time to the permissions of its user, or set maxClockSkewSeconds: Infinity'

export interface CheckedTime {
  /** The time of this process, milliseconds since 1970. */
  readonly now: number
  /** How far the times of other janitors may be ahead of it, in seconds; `Infinity` if it was not compared. */
  readonly maxAhead: number
}

/**
 * Returns a function that reads the clock of this process, and compares it with that of Redis in one round trip.
 *
 * Of several servers, it asks only the one that has the janitor's lock, which every run needs. One clock is enough to
 * notice that ours is wrong, and the times of sessions come from the clocks of the processes, not from Redis: a wrong
 * clock of another node does no harm.
 *
 * Permissions of earlier versions lack TIME. Then it does not compare. It warns when the clocks begin to differ, or
 * can no longer be compared, not each time.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` if the clocks differ by more than the maximum; as `Runner.run`.
 */
export function clockCheck({
  runner,
  keys,
  now,
  maxClockSkewSeconds,
}: Settings & { maxClockSkewSeconds: number }) {
  let state: 'good' | 'wrong' | 'unknown' = 'good'

  function enter(next: typeof state, message: string): void {
    if (next !== state) publishWarning({ code: 'ONETRIP_CLOCK', message })
    state = next
  }

  return async (): Promise<CheckedTime> => {
    const time = now()
    const notCompared = { now: time, maxAhead: Number.POSITIVE_INFINITY }
    if (maxClockSkewSeconds === Number.POSITIVE_INFINITY) return notCompared
    const redis = await runner.run(redisTime(keys))
    if (redis === undefined) {
      enter('unknown', NOT_ALLOWED)
      return notCompared
    }
    const ahead = scoreOf(time) - redis
    const skew = Math.max(ahead, redis - scoreOf(now())) // Redis read its clock between the two readings of ours
    if (skew > maxClockSkewSeconds) {
      const message = `the clock of this process is ${skew.toFixed(1)} s ${skew === ahead ? 'ahead of' : 'behind'} that of Redis, more than maxClockSkewSeconds (${maxClockSkewSeconds}), so the janitor changed nothing: synchronize the clocks of both machines (NTP)`
      enter('wrong', message)
      throw new StoreError('ONETRIP_INVALID_INPUT', message)
    }
    state = 'good'
    return { now: time, maxAhead: 2 * maxClockSkewSeconds } // another clock may differ in the other direction
  }
}
