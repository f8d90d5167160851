import type { OperationTrace } from './diagnostics.ts'
import type { Keys } from './keys.ts'

/** A Redis command as data: its name, then its arguments. */
export type Command = readonly [name: string, ...args: (string | number)[]]

const COMMANDS_WITH_KEY_COUNT = new Set('EVAL EVAL_RO EVALSHA EVALSHA_RO FCALL FCALL_RO'.split(' '))

/** The keys of a command. */
export function keysOf([name, ...args]: Command): string[] {
  if (name === 'PING') return []
  if (COMMANDS_WITH_KEY_COUNT.has(name.toUpperCase())) {
    return args.slice(2, 2 + Number(args[1])).map(String)
  }
  return [String(args[0])]
}

/** Redis's reply to one command. */
export type Reply = string | number | null | readonly Reply[]

/** Commands that are sent together. */
export interface CommandList {
  readonly commands: readonly Command[]
  /**
   * Whether the commands may be merged with those of other callers (`merge.ts`). Merging changes the replies
   * to HSET, ZADD and ZREMRANGEBYRANK, so `read` must ignore these. Default false.
   */
  readonly mergeable?: boolean
  /** Set by the store while `onetrip:operation` has subscribers. */
  readonly trace?: OperationTrace
}

/** Commands that are sent together, and a function that reads the replies. */
export interface Operation<Result> extends CommandList {
  /** Whether no command writes. Then a retry after a lost reply is safe. */
  readonly readOnly: boolean
  /** Called with one reply for each command, in order, if none of them is an error. */
  read(replies: readonly Reply[]): Result
}

/** An operation whose commands have names, so that others can add commands to it or replace some. */
export interface NamedOperation<Result, Name extends string> extends Operation<Result> {
  /** In the order in which they are sent. */
  readonly named: Readonly<Record<Name, Command>>
  readNamed(replies: Readonly<Record<Name, Reply>>): Result
}

/** @param read Called with one reply for each name. */
export function namedOperation<Result, Name extends string>(
  named: Readonly<Record<Name, Command>>,
  read: (replies: Readonly<Record<Name, Reply>>) => Result,
  flags: Pick<Operation<Result>, 'readOnly' | 'mergeable'>,
): NamedOperation<Result, Name> {
  const names = Object.keys(named) as Name[]
  return {
    ...flags,
    named,
    readNamed: read,
    commands: Object.values(named),
    read(replies) {
      const byName = {} as Record<Name, Reply>
      names.forEach((name, place) => {
        byName[name] = replies[place] ?? null
      })
      return read(byName)
    },
  }
}

/** The value of a guest session in the hash `login`. */
export const GUEST = ''

/** The user for a value of the hash `login`: null for a guest session, undefined without a session. */
export const userOf = (reply: Reply | undefined): string | null | undefined => {
  if (typeof reply !== 'string') return undefined
  return reply === GUEST ? null : reply
}

/** How many recently viewed items a session keeps, as in the source articles. */
export const KEPT_VIEWS = 25

export const trimViews = (keys: Keys, id: string): Command => [
  'ZREMRANGEBYRANK',
  keys.viewed(id),
  0,
  -(KEPT_VIEWS + 1),
]

/** Parses a reply WITHSCORES: a flat list (member, score, member …) in RESP2, pairs in RESP3. */
export const memberScores = (reply: Reply | undefined): [member: string, score: number][] => {
  const flat = Array.isArray(reply) ? (reply as readonly Reply[]).flat() : []
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    String(flat[2 * index]),
    Number(flat[2 * index + 1]),
  ])
}

/** Converts milliseconds to Unix seconds with fraction, which Redis stores as in the source articles. */
export const scoreOf = (time: number): number => time / 1000
export const timeOf = (score: Reply | undefined): number => Math.round(1000 * Number(score ?? 0))

/**
 * `update_token` of the source articles: two commands, or five with an item. It creates a missing session.
 *
 * The source articles write `login` first. Here `recent` comes first, so that the janitor does not end the
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
    mergeable: true,
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
): NamedOperation<RecordedView | undefined, keyof ViewCommands> {
  const { id, item } = input
  const commands: ViewCommands = {
    refresh: ['ZADD', keys.recent(id), 'XX', scoreOf(now), id],
    view: ['ZADD', keys.viewed(id), scoreOf(now), item],
    trim: trimViews(keys, id),
    count: ['ZINCRBY', keys.popular(item), -1, item],
    user: ['HGET', keys.login(id), id],
  }
  return namedOperation(
    commands,
    (replies) => {
      const user = userOf(replies.user)
      return user === undefined ? undefined : { user, views: -Number(replies.count) }
    },
    { mergeable: true, readOnly: false },
  )
}

/** The five commands of a page view, in this order. */
export type ViewCommands = Record<'refresh' | 'view' | 'trim' | 'count' | 'user', Command>

/**
 * Undoes a `recordView` of a session that is gone: removes its views, decrements the count, and removes the
 * item if it has no other views.
 *
 * Keys: viewed of the session, item counts.
 */
export function undoView(keys: Keys, input: { id: string; item: string }): Operation<void> {
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

/** `check_token` of the source articles, and the time of last use. Keys: recent, login. */
export function checkToken(
  keys: Keys,
  id: string,
): NamedOperation<Session | undefined, 'lastSeen' | 'user'> {
  return namedOperation(
    {
      lastSeen: ['ZSCORE', keys.recent(id), id],
      user: ['HGET', keys.login(id), id],
    },
    (replies) => {
      const user = userOf(replies.user)
      return user === undefined ? undefined : { user, lastSeenAt: timeOf(replies.lastSeen) }
    },
    { mergeable: true, readOnly: true },
  )
}

/** Refreshes a session; `XX` creates none. Reads the login last, as `recordView` does. Keys: recent, login. */
export function touchSession(keys: Keys, id: string, now: number): Operation<Session | undefined> {
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

/** The ids of the most recently seen sessions, newest first. Keys: recent. */
export function recentIds(
  keys: Keys,
  limit: number,
): Operation<{ id: string; lastSeenAt: number }[]> {
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
export function usersOf(
  keys: Keys,
  ids: readonly string[],
): Operation<(string | null | undefined)[]> {
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
 * The most viewed items, most viewed first. The result is exact: all views of an item are counted in one
 * partition, so the top `limit` of all items are among the top `limit` of each partition. Keys: item
 * counts.
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
