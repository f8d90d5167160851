import type { DataOption, MaybeData, PatchOptions, SessionData } from './data/data.ts'
import type { ExternalSessions } from './data/external-sessions.ts'
import type { NodeState } from './nodes.ts'
import type { Janitor, JanitorOptions } from './retention/janitor.ts'
import type { NodeResult, PoolState } from './runner.ts'
import type { Attempts } from './sessions/attempts.ts'
import type { UserExport, WalkOptions } from './sessions/user-records.ts'
import type { ListedSession } from './sessions/user-session-lists.ts'
import type { LoginOptions, PageOptions, ViewOptions } from './store-options.ts'
import type { PopularItem, RecordedView, Session, Update, ViewedItem } from './updates.ts'

export interface NewSession {
  /** The credential: for its owner only. */
  token: string
  /** When the token stops being good at the latest, in milliseconds since 1970. */
  expiresAt: number
}

export interface RecentSession {
  /** Null for a guest session. */
  user: string | null
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

export interface UserSession extends ListedSession {
  /** It is the session of the token that asked. */
  current: boolean
}

export interface UserSessionPage {
  /** The latest login first. */
  sessions: UserSession[]
  /** For the next page; undefined on the last one. */
  nextCursor?: string
}

/**
 * Logins, recent sessions and viewed items in Redis.
 *
 * Every function that takes a token refuses a malformed, forged or expired one without asking Redis.
 * Besides what each one names, all throw a `StoreError` of the codes of `run`, and
 * `ONETRIP_INVALID_INPUT`: every argument's type and range is checked before anything is sent.
 */
export interface SessionStore {
  /** The strategy's name; the sender's for one of your own. */
  readonly strategy: string
  /** How commands go onto the wire: `frame`, `pipeline`, `one by one` … */
  readonly sender: string
  /** What the shared connections are doing; undefined where there are none, as with `naive`. */
  readonly pool: PoolState | undefined

  /** Sessions whose ids other software makes: for adapters, as that of express-session. */
  readonly external: ExternalSessions

  /**
   * Logs a user in on a new token, and lists the session for `userSessions`. One round trip; up to
   * five more to end the oldest sessions if the user has more than `maxSessionsPerUser`. If ending
   * them fails, the login still succeeds, and the next one tries again.
   *
   * With `from`, the session takes over the data and views of a guest session, which ends: two to four
   * round trips in place of one. If ending it fails, the login still succeeds.
   */
  login(user: string, options?: LoginOptions): Promise<NewSession>

  /**
   * Begins a session without a user on a new token: it has views and data, and its `user` is null.
   * `login(user, { from: token })` makes it a user's. One round trip.
   */
  loginGuest(): Promise<NewSession>

  /** A new token, good for `updateToken`. Nothing is sent to Redis. */
  issueToken(): string

  /** When this token stops being good at the latest, in milliseconds since 1970. */
  tokenExpiresAt(token: string): number

  /**
   * The source articles' `update_token`: logs the user in on this token, and records a view of `item` if
   * there is one. One round trip. It creates the session when there is none, so it is no way to record
   * a view of somebody who may have logged out; and the session is not in the user's list, as after
   * `login`.
   */
  updateToken(token: string, user: string, item?: string): Promise<void>

  /**
   * Records that the session viewed the item. One round trip, which also reads the session's data with
   * `{ data: true }`.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the session is gone; nothing of the view is
   *   left then (that takes a second round trip, and if the janitor halves the counts in between,
   *   the item is counted one view too low). When the undoing fails: `ONETRIP_OUTCOME_UNKNOWN`,
   *   with its error as the cause; the item may stay counted, and the janitor sweeps the rest.
   */
  recordView<Asked extends ViewOptions>(
    token: string,
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked>>

  /**
   * Who is logged in: `user` is null for a guest session. Writes nothing. One round trip, which also
   * reads the session's data with `{ data: true }`.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
   */
  checkToken<Asked extends DataOption>(
    token: string,
    options?: Asked,
  ): Promise<MaybeData<Session, Asked>>

  /**
   * The session's data. Writes nothing. One round trip.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; `ONETRIP_UNREADABLE_DATA`, as all functions that read data,
   *   when a field in Redis is not JSON.
   */
  data(token: string): Promise<SessionData>

  /**
   * Changes fields of the session's data: each value is stored as JSON, undefined removes the field,
   * and all other fields stay. All of the patch is written or nothing, and the session is seen now.
   * Patches of different fields at the same time all count; of the same field the last one does,
   * unless `ifVersion` is given. One round trip.
   *
   * @returns The new version.
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; `ONETRIP_CONFLICT` when the data has another version
   *   than `ifVersion`; `ONETRIP_INVALID_INPUT` for a value that is not JSON or beyond `dataLimits`.
   */
  patch(
    token: string,
    fields: Readonly<Record<string, unknown>>,
    options?: PatchOptions,
  ): Promise<{ version: number }>

  /**
   * As `checkToken`, and the session is seen now. Two round trips; one if it was seen less than
   * `unlessWithinSeconds` (default 0) ago, so that frequent calls need not write each time.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
   */
  touch(token: string, unlessWithinSeconds?: number): Promise<Session>

  /** The newest `limit` (1 to 1,000, default 50) sessions, newest first. Two round trips. */
  recentSessions(limit?: number): Promise<RecentSession[]>

  /**
   * The newest 25 items of this session, newest first.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
   */
  viewedItems(token: string): Promise<ViewedItem[]>

  /** The `limit` (1 to 1,000, default 10) most viewed items, most viewed first. */
  popularItems(limit?: number): Promise<PopularItem[]>

  /** Ends the session and removes its views. Returns false when there was none. Two round trips. */
  logout(token: string): Promise<boolean>

  /**
   * A page of the sessions of the token's user that began with `login`, the latest first; none for a
   * guest session. It may have
   * fewer than `limit`, even none, if some have just ended: another page follows as long as there is a
   * `nextCursor`. Logins and logouts between two pages neither skip nor repeat a session. Three round
   * trips, and one more if entries without a session were found and removed.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the token's own session is gone,
   *   `ONETRIP_INVALID_INPUT` for a cursor that no page had.
   */
  userSessions(token: string, page?: PageOptions): Promise<UserSessionPage>

  /**
   * Ends a session of the token's user, whichever token it has. Returns false when there is none of
   * that id, or it is somebody else's.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the token's own session is gone.
   */
  revokeSession(token: string, id: string): Promise<boolean>

  /**
   * Ends all sessions of the token's user, this one too, 100 at a time. Returns how many.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` when the token's own session is gone.
   */
  logoutEverywhere(token: string): Promise<number>

  /** Ends all sessions of a user that began with `login`. For administrators. Returns how many. */
  endUserSessions(user: string): Promise<number>

  /**
   * Everything that the store holds about a user: the sessions with their views and data, also those
   * that began with `updateToken`. Walks all sessions of all users, about 1,000 in each round trip. A
   * session that begins meanwhile may be missed.
   */
  exportUser(user: string, options?: WalkOptions): Promise<UserExport>

  /**
   * Ends all sessions of a user and removes everything that the store holds about them: first those
   * that began with `login`, then, by a walk as in `exportUser`, all others. Call it once the user
   * cannot log in any more; if it fails, call it again. Returns how many sessions there were.
   */
  eraseUser(user: string, options?: WalkOptions): Promise<number>

  /**
   * Counts an attempt at something, such as logging in, by each of `subjects` (a user, an address: any
   * text), over all processes, in windows of `windowSeconds`, a whole number. The caller decides what to
   * refuse. One round trip.
   */
  countAttempts(subjects: readonly string[], windowSeconds: number): Promise<Attempts>

  /**
   * Runs an update of your own by the same means: its commands share the round trip, the deadline and the
   * errors of all others. A command's first argument must be its key (scripts and functions say how many they have).
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`; `ONETRIP_INVALID_INPUT` for commands that block or change the connection, which
   *   others share.
   */
  run<Result>(update: Update<Result>): Promise<Result>

  /**
   * Resolves once Redis can be used. Warns (`onetrip:warning`) if Redis may evict sessions. With partitioned
   * keys, the first start records the number of partitions in Redis, and every start compares it.
   *
   * @param timeoutMs At most a day. Default 10,000.
   * @param options `readOnly`: compares the number of partitions without recording it. Default false.
   * @throws StoreError `ONETRIP_NOT_SENT` when it cannot be used until then; `ONETRIP_INVALID_INPUT` when the
   *   data in Redis has another number of partitions.
   */
  ready(timeoutMs?: number, options?: { readOnly?: boolean }): Promise<void>

  /**
   * Whether Redis serves its keys: one entry for each server that holds some, which is each master of a
   * cluster, and otherwise one. A server that has not answered after `timeoutMs` (default: the deadline)
   * has an error.
   *
   * @throws StoreError when no server serves its keys.
   */
  ping(timeoutMs?: number): Promise<NodeState[]>

  /**
   * Runs an update that writes nothing and has no keys, as INFO, on each server that holds keys: each
   * master of a cluster, and otherwise one. A server that fails has an error in place of a result.
   *
   * @throws StoreError as `run`, when the servers are not known.
   */
  runOnEach<Result>(update: Update<Result>): Promise<NodeResult<Result>[]>

  /**
   * Another janitor, to start or to run by hand: it ends sessions that are idle or beyond the
   * maximum, rescales the item counts and removes leftovers. Any number of processes may have any
   * number: one of them works at a time. Redis 7.0 or newer.
   *
   * @throws TypeError for an option that does not exist, has a wrong type or is out of range.
   */
  janitor(limits?: JanitorOptions): Janitor

  /**
   * Stops its janitors, waits for the calls in flight, also those of several round trips, at most for
   * `deadlineMs`, then closes all connections. Calls that begin meanwhile are refused.
   */
  close(): Promise<void>
}
