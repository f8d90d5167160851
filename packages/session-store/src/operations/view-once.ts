import { createHash } from 'node:crypto'
import type { Operation, Reply } from '../command.ts'
import type { Keys } from '../keys.ts'

/** How long an idempotency key is valid. */
const KEY_LIFETIME_SECONDS = 600

/** A view with an idempotency key. */
export interface RepeatableView {
  id: string
  item: string
  /** Any text. Redis gets only a hash of it. */
  idempotencyKey: string
}

/**
 * KEYS: item counts, the marker of this view, login. ARGV: item, seconds, session id. Returns the user, nil if the
 * session is gone, and the count of the first call, nil if none counted the view.
 */
const COUNT_ONCE = `-- count once
local user = redis.call('HGET', KEYS[3], ARGV[3])
local count = redis.call('GET', KEYS[2])
if user and not count then
  count = redis.call('ZINCRBY', KEYS[1], -1, ARGV[1])
  redis.call('SET', KEYS[2], count, 'EX', ARGV[2])
end
return { user, count }`

interface ViewOnce<View> {
  /** Undefined if the session is gone. */
  view: View | undefined
  /** Whether a call with this key has counted the view. */
  isCounted: boolean
}

/**
 * `recordView` with a script instead of its last two commands: for ten minutes, all calls with the same key count once.
 * The script also reads the login, so it counts no view of a session that is gone, and a count is never undone.
 *
 * Keys: those of the operation, and the marker of this view.
 *
 * @param view `recordView`, perhaps with data. Its last two commands count the view and read the login.
 */
export function recordViewOnce<View>(
  keys: Keys,
  { id, item, idempotencyKey }: RepeatableView,
  { commands, read }: Operation<View | undefined>,
): Operation<ViewOnce<View>> {
  const text = JSON.stringify([id, item, idempotencyKey])
  const marker = keys.once(item, createHash('sha256').update(text).digest('base64url'))
  const own = [keys.popular(item), marker, keys.login(id)]
  const script = ['EVAL', COUNT_ONCE, own.length, ...own, item, KEY_LIFETIME_SECONDS, id] as const
  return {
    commands: [...commands.slice(0, -2), script],
    readOnly: false,
    read(replies) {
      const [user = null, count = null] = replies.at(-1) as readonly Reply[]
      return { view: read([...replies.slice(0, -1), count, user]), isCounted: count !== null }
    },
  }
}
