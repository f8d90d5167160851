import { createHash } from 'node:crypto'
import { type Command, type Operation, type Reply, scoreOf, writing } from '../command.ts'
import { requireSession, StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import type { Settings } from '../options.ts'
import { userOf } from '../sessions/check.ts'

/** How many recently viewed items a session keeps, as in Redis in Action. */
export const KEPT_VIEWS = 25

export const trimViews = (keys: Keys, id: string): Command => [
  'ZREMRANGEBYRANK',
  keys.viewed(id),
  0,
  -(KEPT_VIEWS + 1),
]

/**
 * `update_token` of Redis in Action: two commands, or five with an item. It creates a missing session.
 *
 * Redis in Action writes `login` first. Here `recent` comes first, so that the janitor does not end the
 * session as idle between the two commands.
 *
 * Keys: recent, login, viewed of the session, item counts. A partial failure leaves the records of the
 * commands before it.
 */
export function writeSession(
  keys: Keys,
  input: { id: string; user: string; item?: string | undefined },
  now: number,
): Operation<void> {
  const { id, user, item } = input
  const view: Command[] =
    item === undefined
      ? []
      : [
          ['ZADD', keys.viewed(id), scoreOf(now), item],
          trimViews(keys, id),
          ['ZINCRBY', keys.popular(item), -1, item],
        ]
  return writing(
    ['ZADD', keys.recent(id), scoreOf(now), id],
    ['HSET', keys.login(id), id, user],
    ...view,
  )
}

/** The result of a recorded view. */
export interface RecordedView {
  /** The user of the session; null for a guest session. */
  user: string | null
  /** How often the item has been viewed, including this view. */
  views: number
}

/**
 * An authenticated page view: five commands. `ZADD XX` refreshes a session but cannot create one. The login is
 * read last: it shows whether the session ended while the view was written; if the session ends later, the
 * view is removed with it.
 *
 * Keys: recent, viewed of the session, item counts, login. Returns undefined if the session is gone. The view
 * has been written even so: undo it with `undoView`.
 */
export function recordView(
  keys: Keys,
  input: { id: string; item: string },
  now: number,
): Operation<RecordedView | undefined> {
  const { id, item } = input
  const score = scoreOf(now)
  return {
    commands: [
      ['ZADD', keys.recent(id), 'XX', score, id],
      ['ZADD', keys.viewed(id), score, item],
      trimViews(keys, id),
      ['ZINCRBY', keys.popular(item), -1, item],
      ['HGET', keys.login(id), id],
    ],
    readOnly: false,
    read(replies) {
      const [count, login] = replies.slice(-2)
      const user = userOf(login)
      return user === undefined ? undefined : { user, views: -Number(count) }
    },
  }
}

/**
 * Undoes a `recordView` of a session that is gone: removes its views, decrements the count, and removes the
 * item if it has no other views.
 *
 * Keys: viewed of the session, item counts.
 *
 * @param input Without `item`: nothing was counted.
 */
export function undoView(keys: Keys, { id, item }: { id: string; item?: string }): Operation<void> {
  const uncount: Command[] =
    item === undefined
      ? []
      : [
          ['ZINCRBY', keys.popular(item), 1, item],
          ['ZREMRANGEBYSCORE', keys.popular(item), 0, '+inf'],
        ]
  return writing(['DEL', keys.viewed(id)], ...uncount)
}

/** How long an idempotency key is valid. */
const KEY_LIFETIME_SECONDS = 600

/** A view with an idempotency key. */
interface RepeatableView {
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

const UNDO_FAILED =
  'the session has ended, and undoing its view failed: the item may still be counted'
const STILL_COUNTED =
  'the session does not exist or has ended; a view of an earlier call with this idempotency key may still be counted'

/** Records a view, and undoes it if the session has ended. */
export function recordOrUndo<View>(
  { runner, keys }: Settings,
  input: { id: string; item: string },
  view: Operation<View | undefined>,
): Promise<View> {
  const unknown = () =>
    undo(runner, undoView(keys, input)).then(() => requireSession<View>(undefined))
  return runner.run(view).then((recorded) => recorded ?? unknown())
}

/** The same with an idempotency key. @throws StoreError `ONETRIP_INVALID_INPUT` unless all keys are on one Redis. */
export async function recordOnce<View>(
  { runner, keys }: Settings,
  input: RepeatableView,
  view: Operation<View | undefined>,
): Promise<View> {
  if (runner.sender.nodes || keys.parts().length > 1) {
    throw new StoreError('ONETRIP_INVALID_INPUT', 'an idempotency key needs all keys on one Redis')
  }
  const once = recordViewOnce(keys, input, view)
  const { view: recorded, isCounted } = await runner.run(once)
  if (recorded !== undefined) return recorded
  await undo(runner, undoView(keys, { id: input.id }))
  if (!isCounted) return requireSession<View>(undefined)
  throw new StoreError('ONETRIP_UNKNOWN_SESSION', STILL_COUNTED, { mayHaveWritten: true })
}

async function undo(runner: Settings['runner'], operation: Operation<void>): Promise<void> {
  await runner.run(operation).catch((cause: unknown) => {
    throw new StoreError('ONETRIP_OUTCOME_UNKNOWN', UNDO_FAILED, { cause })
  })
}
