import type { UpdateTrace } from './diagnostics.ts'
import type { Keys } from './keys.ts'

/** A Redis command as data: its name, then its arguments. */
export type Command = readonly [name: string, ...args: (string | number)[]]

const KEYS_COUNTED = new Set(['EVAL', 'EVAL_RO', 'EVALSHA', 'EVALSHA_RO', 'FCALL', 'FCALL_RO'])

/** The keys that a command names. */
export function keysOf([name, ...args]: Command): string[] {
  if (name === 'PING') return []
  if (KEYS_COUNTED.has(name.toUpperCase())) return args.slice(2, 2 + Number(args[1])).map(String)
  return [String(args[0])]
}

/** What Redis replied to one command. */
export type Reply = string | number | null | readonly Reply[]

/** Commands that go to Redis together. */
export interface CommandList {
  readonly commands: readonly Command[]
  /**
   * They may be merged with those of other callers (`merge.ts`). Only for commands whose exact reply
   * nobody reads where merging loses it: how many fields or members are new. Default false.
   */
  readonly mergeable?: boolean
  /** Set by the store while `onetrip:update` has subscribers. */
  readonly trace?: UpdateTrace
}

/** And how to read what Redis replies. */
export interface Update<Result> extends CommandList {
  /** True when no command writes, so that a lost reply loses nothing. */
  readonly readOnly: boolean
  /** Gets one reply for each command, in order; none is an error. */
  read(replies: readonly Reply[]): Result
}

/** The user of a guest session, as the hash `login` holds it. */
export const GUEST = ''

/** The user that the hash `login` holds: null for a guest session, undefined without a session. */
export const userOf = (reply: Reply | undefined): string | null | undefined => {
  if (typeof reply !== 'string') return undefined
  return reply === GUEST ? null : reply
}

/** The newest items that are kept of each session, as in the source articles. */
export const KEPT_VIEWS = 25

export const trimViews = (keys: Keys, id: string): Command => [
  'ZREMRANGEBYRANK',
  keys.viewed(id),
  0,
  -(KEPT_VIEWS + 1),
]

/** RESP2 replies member, score, member, score …; RESP3 replies pairs. */
export const memberScores = (reply: Reply | undefined): [member: string, score: number][] => {
  const flat = Array.isArray(reply) ? (reply as readonly Reply[]).flat() : []
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    String(flat[2 * index]),
    Number(flat[2 * index + 1]),
  ])
}

/** Redis keeps times as the source articles do, in Unix seconds with fraction; ours are milliseconds. */
export const scoreOf = (time: number): number => time / 1000
export const timeOf = (score: Reply | undefined): number => Math.round(1000 * Number(score ?? 0))

/**
 * The source articles' `update_token`: its commands, two or five with an item. It is a login: it creates the
 * session when it is not there.
 *
 * The source articles write `login` first. Here `recent` comes first: the janitor ends a session that was not
 * seen for long, and must not do so between the two commands that renew it.
 *
 * Keys: recent, login, viewed of the session, item counts. A failure in between leaves the records of
 * the commands before it.
 */
export function updateToken(
  keys: Keys,
  input: { id: string; user: string; item?: string | undefined },
  now: number,
): Update<void> {
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
    mergeable: true,
    readOnly: false,
    read: () => undefined,
  }
}

/** What a view found: who is logged in, and how often the item has been viewed, this view included. */
export interface RecordedView {
  /** Null for a guest session. */
  user: string | null
  views: number
}

/**
 * An authenticated page view: five commands. `ZADD XX` refreshes a session but cannot create one. Who
 * is logged in is asked last: a session that ended while the view was written is found to be gone, and
 * one that ends later takes the view with it.
 *
 * Keys: recent, viewed of the session, item counts, login. Reads undefined when the session is gone;
 * the view has been written nevertheless and `undoView` takes it back.
 */
export function recordView(
  keys: Keys,
  input: { id: string; item: string },
  now: number,
): Update<RecordedView | undefined> {
  const { id, item } = input
  return {
    commands: [
      ['ZADD', keys.recent(id), 'XX', scoreOf(now), id],
      ['ZADD', keys.viewed(id), scoreOf(now), item],
      trimViews(keys, id),
      ['ZINCRBY', keys.popular(item), -1, item],
      ['HGET', keys.login(id), id],
    ],
    mergeable: true,
    readOnly: false,
    read([, , , count, reply]) {
      const user = userOf(reply)
      return user === undefined ? undefined : { user, views: -Number(count) }
    },
  }
}

/**
 * Takes back what `recordView` wrote for a session that is gone: its views, the count, and the item
 * itself when nobody else has viewed it.
 *
 * Keys: viewed of the session, item counts.
 */
export function undoView(keys: Keys, input: { id: string; item: string }): Update<void> {
  const { id, item } = input
  return {
    commands: [
      ['DEL', keys.viewed(id)],
      ['ZINCRBY', keys.popular(item), 1, item],
      ['ZREMRANGEBYSCORE', keys.popular(item), 0, '+inf'],
    ],
    readOnly: false,
    read: () => undefined,
  }
}

export interface Session {
  /** Null for a guest session. */
  user: string | null
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

/** The source articles' `check_token`, and when the session was last seen. Keys: login, recent. */
export function checkToken(keys: Keys, id: string): Update<Session | undefined> {
  return {
    commands: [
      ['ZSCORE', keys.recent(id), id],
      ['HGET', keys.login(id), id],
    ],
    mergeable: true,
    readOnly: true,
    read([lastSeen, reply]) {
      const user = userOf(reply)
      return user === undefined ? undefined : { user, lastSeenAt: timeOf(lastSeen) }
    },
  }
}

/**
 * The session is seen now, if it is there: `XX` creates nothing. Who is logged in is asked last, as in
 * `recordView`. Keys: recent, login.
 */
export function touchSession(keys: Keys, id: string, now: number): Update<Session | undefined> {
  return {
    commands: [
      ['ZADD', keys.recent(id), 'XX', scoreOf(now), id],
      ['HGET', keys.login(id), id],
    ],
    mergeable: true,
    readOnly: false,
    read([, reply]) {
      const user = userOf(reply)
      return user === undefined ? undefined : { user, lastSeenAt: now }
    },
  }
}

/** The ids of the sessions that were seen last, newest first. Keys: recent. */
export function recentIds(keys: Keys, limit: number): Update<{ id: string; lastSeenAt: number }[]> {
  return {
    commands: keys
      .parts()
      .map(({ recent }): Command => ['ZREVRANGE', recent, 0, limit - 1, 'WITHSCORES']),
    readOnly: true,
    read: (replies) =>
      replies
        .flatMap(memberScores)
        .map(([id, score]) => ({ id, lastSeenAt: timeOf(score) }))
        .sort((a, b) => b.lastSeenAt - a.lastSeenAt)
        .slice(0, limit),
  }
}

/** The users of these sessions: null for a guest, undefined for one that is gone. Keys: login. */
export function usersOf(keys: Keys, ids: readonly string[]): Update<(string | null | undefined)[]> {
  const byKey = Map.groupBy(ids, (id) => keys.login(id))
  return {
    commands: [...byKey].map(([key, members]): Command => ['HMGET', key, ...members]),
    readOnly: true,
    read(replies) {
      const users = new Map<string, string | null>()
      const membersOf = [...byKey.values()]
      replies.forEach((reply, place) => {
        membersOf[place]?.forEach((id, index) => {
          const user = userOf((reply as readonly Reply[])[index])
          if (user !== undefined) users.set(id, user)
        })
      })
      return ids.map((id) => users.get(id))
    },
  }
}

export interface ViewedItem {
  item: string
  /** Milliseconds since 1970. */
  viewedAt: number
}

/** Who the session is and what it viewed last, newest first. Keys: login, viewed of the session. */
export function viewedItems(keys: Keys, id: string): Update<ViewedItem[] | undefined> {
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
 * The most viewed items, most viewed first. The result is exact: all views of an item are counted in one
 * partition, so the top `limit` of all items are among the top `limit` of each partition. Keys: item
 * counts.
 */
export function popularItems(keys: Keys, limit: number): Update<PopularItem[]> {
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
