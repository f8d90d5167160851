import { type Command, memberScores, type Operation, scoreOf, timeOf } from '../command.ts'
import type { Keys } from '../keys.ts'
import { userOf } from './sessions.ts'

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
export function updateToken(
  keys: Keys,
  input: { id: string; user: string; item?: string | undefined },
  now: number,
): Operation<void> {
  const { id, user, item } = input
  const login: Command[] = [
    ['ZADD', keys.recent(id), scoreOf(now), id],
    ['HSET', keys.login(id), id, user],
  ]
  const view: Command[] =
    item === undefined
      ? []
      : [
          ['ZADD', keys.viewed(id), scoreOf(now), item],
          trimViews(keys, id),
          ['ZINCRBY', keys.popular(item), -1, item],
        ]
  return {
    commands: [...login, ...view],
    readOnly: false,
    read: () => undefined,
  }
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
  return {
    commands: [['DEL', keys.viewed(id)], ...uncount],
    readOnly: false,
    read: () => undefined,
  }
}

export interface ViewedItem {
  item: string
  /** Milliseconds since 1970. */
  viewedAt: number
}

/** The items that the session viewed last, newest first. Keys: viewed of the session, login. */
export function viewedItems(keys: Keys, id: string): Operation<ViewedItem[] | undefined> {
  return {
    commands: [
      ['ZREVRANGE', keys.viewed(id), 0, -1, 'WITHSCORES'],
      ['HGET', keys.login(id), id],
    ],
    readOnly: true,
    read: ([views, user]) =>
      typeof user === 'string'
        ? memberScores(views).map(([item, score]) => ({ item, viewedAt: timeOf(score) }))
        : undefined,
  }
}

export interface PopularItem {
  item: string
  views: number
}

/**
 * The most viewed items, most viewed first. The result is exact: all views of an item are counted in one part, so the
 * top `limit` of all items are among the top `limit` of each part. Keys: item counts.
 */
export function popularItems(keys: Keys, limit: number): Operation<PopularItem[]> {
  return {
    commands: keys.allPopular().map((key): Command => ['ZRANGE', key, 0, limit - 1, 'WITHSCORES']),
    readOnly: true,
    read: (replies) =>
      replies
        .flatMap(memberScores)
        .map(([item, score]) => ({ item, views: -score }))
        .sort((a, b) => b.views - a.views)
        .slice(0, limit),
  }
}
