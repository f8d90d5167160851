import { VERSION } from '../core/data/data.ts'
import type { Keys } from '../core/keys.ts'
import type { Operation } from '../core/operation.ts'

/** Lets a tombstone live for at most this time. Keys: ended. */
export const shortenTombstone = (keys: Keys, id: string, seconds: number): Operation<void> => ({
  commands: [['EXPIRE', keys.ended(id), seconds, 'LT']],
  readOnly: false,
  read: () => undefined,
})

/** KEYS: login, recent, data. ARGV: id. Returns the user. */
const END_COPY = `
if redis.call('HGET', KEYS[3], '${VERSION}') ~= '0' then return end
local user = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[3])
redis.call('PUBLISH', KEYS[1], ARGV[1])
return user`

/**
 * Ends a session that nobody has written since it was copied. Its tombstone stays. Returns its user, if it has one.
 * Keys: login, recent, data.
 */
export function endCopy(keys: Keys, id: string): Operation<string | undefined> {
  const own = [keys.login(id), keys.recent(id), keys.data(id)]
  return {
    commands: [['EVAL', END_COPY, own.length, ...own, id]],
    readOnly: false,
    read: ([user]) => (typeof user === 'string' ? user : undefined),
  }
}
