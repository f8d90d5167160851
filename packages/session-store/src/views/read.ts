import { type Command, memberScores, type Operation, timeOf } from '../command.ts'
import type { Keys } from '../keys.ts'

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
