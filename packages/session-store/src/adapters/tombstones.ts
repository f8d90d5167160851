import { VERSION } from '../core/data/data.ts'
import type { Keys } from '../core/keys.ts'
import type { Operation } from '../core/operation.ts'
import { endSessions } from '../core/sessions/session-operations.ts'

/** Must be longer than a request that loaded the session before it ended. */
export const MIN_TOMBSTONE_SECONDS = 300

/** The longest time that browsers keep a cookie: 400 days. */
export const MAX_TOMBSTONE_SECONDS = 400 * 24 * 3600

/** The lifetime of a tombstone for `seconds`, within its limits. */
export const tombstoneSeconds = (seconds: number) =>
  Math.ceil(Math.min(Math.max(seconds, MIN_TOMBSTONE_SECONDS), MAX_TOMBSTONE_SECONDS))

/**
 * Ends a session. The tombstone, which is written first, prevents a late `create` of the same id; one that lives
 * longer stays. Returns the user, undefined if there was no session. Keys: ended, login, recent, viewed, data.
 */
export function endWithTombstone(
  keys: Keys,
  id: string,
  tombstoneSeconds: number,
): Operation<string | undefined> {
  const end = endSessions(keys, [id])
  const key = keys.ended(id)
  return {
    commands: [
      ['SET', key, '', 'EX', tombstoneSeconds, 'NX'],
      ['EXPIRE', key, tombstoneSeconds, 'GT'],
      ...end.commands,
    ],
    readOnly: false,
    read: ([, , ...replies]) => end.read(replies)[0],
  }
}

/** Lets a tombstone live for at most this time. Keys: ended. */
export const shortenTombstone = (keys: Keys, id: string, seconds: number): Operation<void> => ({
  commands: [['EXPIRE', keys.ended(id), seconds, 'LT']],
  readOnly: false,
  read: () => undefined,
})

/** KEYS: login, recent, data. ARGV: id. */
const END_COPY = `
if redis.call('HGET', KEYS[3], '${VERSION}') ~= '0' then return end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[3])
redis.call('PUBLISH', KEYS[1], ARGV[1])`

/** Ends a session that nobody has written since it was copied. Its tombstone stays. Keys: login, recent, data. */
export function endCopy(keys: Keys, id: string): Operation<void> {
  const own = [keys.login(id), keys.recent(id), keys.data(id)]
  return {
    commands: [['EVAL', END_COPY, own.length, ...own, id]],
    readOnly: false,
    read: () => undefined,
  }
}
