import { createHash } from 'node:crypto'
import type { Command, Operation, Reply } from '../command.ts'
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
 * Counts in the session's own script. KEYS: item counts, the marker of this view, login. ARGV: item, seconds, session
 * id. Returns the user, nil if the session is gone, and the count of the first call, nil if none counted the view.
 */
const COUNT_IN_SESSION = `-- count in session
local user = redis.call('HGET', KEYS[3], ARGV[3])
local count = redis.call('GET', KEYS[2])
if user and not count then
  count = redis.call('ZINCRBY', KEYS[1], -1, ARGV[1])
  redis.call('SET', KEYS[2], count, 'EX', ARGV[2])
end
return { user, count }`

/** The marker of a view that was undone: a call that arrives late does not count it. */
const UNDONE = 'undone'

/**
 * Counts without a look at the session. KEYS: item counts, the marker of this view. ARGV: item, seconds. Returns the
 * count, and whether this call counted the view. Any other call gets the count of the first one, and adds a space to
 * the marker: from then on, the first call must not undo the count, because the other may be acknowledged. (Processes
 * of an earlier version read the marker as a number, too.)
 */
const COUNT_ONCE = `-- count once
local count = redis.call('GET', KEYS[2])
if count then
  if count ~= '${UNDONE}' and count:sub(-1) ~= ' ' then
    redis.call('SET', KEYS[2], count .. ' ', 'KEEPTTL')
  end
  return { count, 0 }
end
count = redis.call('ZINCRBY', KEYS[1], -1, ARGV[1])
redis.call('SET', KEYS[2], count, 'EX', ARGV[2])
return { count, 1 }`

/** KEYS: item counts, the marker of this view. ARGV: item. Undoes the count. Returns 0 if another call may rely on it. */
const UNCOUNT = `-- uncount
local count = redis.call('GET', KEYS[2])
if not count or count:sub(-1) == ' ' then return 0 end
redis.call('SET', KEYS[2], '${UNDONE}', 'KEEPTTL')
redis.call('ZINCRBY', KEYS[1], 1, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, '+inf')
return 1`

/** The Redis key that marks a view as counted. */
function markerOf(keys: Keys, { id, item, idempotencyKey }: RepeatableView): string {
  const view = JSON.stringify([id, item, idempotencyKey])
  return keys.once(item, createHash('sha256').update(view).digest('base64url'))
}

type CountedBy = 'this call' | 'an earlier call' | 'none'

interface ViewOnce<View> {
  /** Undefined if the session is gone. */
  view: View | undefined
  /** For a session that is gone: which call with this key counted the view. */
  countedBy: CountedBy
}

/**
 * `recordView` with a script instead of ZINCRBY: for ten minutes, all calls with the same key count once.
 *
 * On one Redis (`sameServer`), the script also reads the login, so it counts no view of a session that is gone, and a
 * count is never undone. On several servers, item counts and logins may be apart. There, the count of a session
 * that is gone must be undone (`undoViewOnce`), which is not possible if another call may rely on it.
 *
 * Keys: those of the operation, and the marker of this view, of the part of the item's count.
 *
 * @param view `recordView`, perhaps with data. Its last two commands count the view and read the login.
 */
export function recordViewOnce<View>(
  keys: Keys,
  input: RepeatableView,
  { view, sameServer }: { view: Operation<View | undefined>; sameServer: boolean },
): Operation<ViewOnce<View>> {
  const { id, item } = input
  const counts = [keys.popular(item), markerOf(keys, input)] as const
  const others = view.commands.slice(0, -2)
  if (!sameServer) {
    const count = ['EVAL', COUNT_ONCE, 2, ...counts, item, KEY_LIFETIME_SECONDS] as const
    return {
      commands: [...others, count, ...view.commands.slice(-1)],
      readOnly: false,
      read(replies) {
        const [count = null, isOwn] = replies.at(-2) as readonly Reply[]
        const countedBy = isOwn === 1 ? 'this call' : countedEarlier(count)
        // The session has ended since its node replied: another call has undone the count because of that.
        if (countedBy === 'none') return { view: undefined, countedBy }
        return { view: view.read(replies.with(-2, count)), countedBy }
      },
    }
  }
  const args = [item, KEY_LIFETIME_SECONDS, id]
  return {
    commands: [...others, ['EVAL', COUNT_IN_SESSION, 3, ...counts, keys.login(id), ...args]],
    readOnly: false,
    read(replies) {
      const [user = null, count = null] = replies.at(-1) as readonly Reply[]
      return {
        view: view.read([...replies.slice(0, -1), count, user]),
        countedBy: countedEarlier(count),
      }
    },
  }
}

const countedEarlier = (count: Reply): CountedBy =>
  count === null || count === UNDONE ? 'none' : 'an earlier call'

/**
 * Undoes `recordViewOnce` of a session that is gone. Returns whether the view may still be counted. Keys: viewed, item
 * counts, the marker.
 */
export function undoViewOnce(
  keys: Keys,
  view: RepeatableView,
  countedBy: CountedBy,
): Operation<boolean> {
  const { id, item } = view
  const commands: Command[] = [['DEL', keys.viewed(id)]]
  if (countedBy === 'this call') {
    commands.push(['EVAL', UNCOUNT, 2, keys.popular(item), markerOf(keys, view), item])
  }
  return {
    commands,
    readOnly: false,
    read: ([, isUndone]) => countedBy !== 'none' && isUndone !== 1,
  }
}
