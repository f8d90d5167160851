import type { DataOption, MaybeData, PatchOptions, SessionData } from './data/data.ts'
import type { PopularItem, RecordedView, Session, Update, ViewedItem } from './operations.ts'
import type { Janitor } from './retention/janitor.ts'
import type { JanitorOptions } from './retention/janitor-options.ts'
import type { NodeState } from './sending/nodes.ts'
import type { NodeResult } from './sending/runner.ts'
import type { Attempts } from './sessions/attempts.ts'
import type { UserExport, WalkOptions } from './sessions/user-records.ts'
import type { ListedSession } from './sessions/user-session-lists.ts'
import type { LoginOptions, PageOptions, ViewOptions } from './store-options.ts'

export interface NewSession {
  /** The credential of the session: keep it secret. */
  token: string
  /** When the token expires, in milliseconds since 1970. The session may end earlier. */
  expiresAt: number
}

export interface StoreInfo {
  /** The name of the strategy, or of the sender passed as `sender`. */
  strategy: string
  /** How commands are sent: `frame`, `pipeline`, `one by one` … */
  sender: string
  /** Connections, up or not; 0 with `naive`, which has none between two operations. */
  connections: number
  /** Connections that are up. */
  ready: number
  /** Operations that are waiting for replies. */
  inFlight: number
}

export interface RecentSession {
  /** Null for a guest session. */
  user: string | null
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

export interface UserSession extends ListedSession {
  /** Whether this is the session of the token passed to `userSessions`. */
  current: boolean
}

export interface UserSessionPage {
  /** Ordered by login time, latest first. */
  sessions: UserSession[]
  /** The cursor of the next page; undefined on the last one. */
  nextCursor?: string
}

/**
 * A store of logins, recent sessions and viewed items in Redis.
 *
 * The store checks the type and range of every argument, and the signature and expiry of every token, before
 * it sends anything. Every function may throw a `StoreError` with `ONETRIP_INVALID_INPUT` (a wrong value),
 * `ONETRIP_WRONG_TYPE` or a code of `run`; with a token also `ONETRIP_INVALID_TOKEN` or `ONETRIP_EXPIRED_TOKEN`.
 * The functions below document only further errors.
 */
export interface SessionStore {
  /** How operations are sent, and the state of the connections. */
  readonly info: StoreInfo

  /**
   * Logs a user in with a new token, and adds the session to the user's list (`userSessions`). One round
   * trip; up to five more to end the oldest sessions if the user has more than `maxSessionsPerUser`. If
   * ending them fails, the login still succeeds, and the next login tries again.
   *
   * With `from`, the session takes over the data and views of a guest session and ends that one: two to five
   * round trips instead of one. If ending it fails, the login still succeeds.
   */
  login(user: string, options?: LoginOptions): Promise<NewSession>

  /**
   * Starts a session without a user with a new token. The session has views and data, and its `user` is null.
   * `login(user, { from: token })` turns it into a user's session. One round trip.
   */
  loginGuest(): Promise<NewSession>

  /** When this token expires, in milliseconds since 1970. The session may end earlier. */
  tokenExpiresAt(token: string): number

  /**
   * Records that the session viewed the item, and refreshes the session. One round trip, which also reads the
   * session's data with `{ data: true }`.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session has ended; the view was undone in a second
   *   round trip (if the janitor halved the counts in between, the item's count is one view too low).
   *   `ONETRIP_OUTCOME_UNKNOWN` with the error as its cause if the undo failed: the item may still be
   *   counted, and the rest stays until a sweep with `sweepKeys`. With an idempotency key, the first error has
   *   `mayHaveWritten` if a view of an earlier call with this key may still be counted.
   */
  recordView<Asked extends ViewOptions>(
    token: string,
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked>>

  /**
   * Returns the user of the session, null for a guest session. Writes nothing. One round trip, which also
   * reads the session's data with `{ data: true }`.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
   */
  checkToken<Asked extends DataOption>(
    token: string,
    options?: Asked,
  ): Promise<MaybeData<Session, Asked>>

  /**
   * Returns the session's data. Writes nothing. One round trip.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; `ONETRIP_UNREADABLE_DATA`, as all functions that read data,
   *   if a field in Redis is not JSON.
   */
  data(token: string): Promise<SessionData>

  /**
   * Changes fields of the session's data and refreshes the session. Each value is stored as JSON; undefined
   * removes the field; all other fields stay. A patch is atomic. Concurrent patches of different fields all
   * take effect; of the same field the last one wins, unless `ifVersion` is given. One round trip.
   *
   * @returns The new version.
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; `ONETRIP_CONFLICT` if the version of the data is not
   *   `ifVersion`; `ONETRIP_INVALID_INPUT` for a value that is not JSON or exceeds `dataLimits`.
   */
  patch(
    token: string,
    fields: Readonly<Record<string, unknown>>,
    options?: PatchOptions,
  ): Promise<{ version: number }>

  /**
   * As `checkToken`, and refreshes the session. Two round trips; one, without a write, if the session was last
   * seen less than `unlessWithinSeconds` (default 0) ago.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
   */
  touch(token: string, unlessWithinSeconds?: number): Promise<Session>

  /** The most recently seen sessions, at most `limit` (1 to 1,000, default 50), newest first. Two round trips. */
  recentSessions(limit?: number): Promise<RecentSession[]>

  /**
   * The 25 most recently viewed items of this session, newest first.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
   */
  viewedItems(token: string): Promise<ViewedItem[]>

  /** The most viewed items, at most `limit` (1 to 1,000, default 10), most viewed first. One round trip. */
  popularItems(limit?: number): Promise<PopularItem[]>

  /**
   * Ends the session and removes its records. Returns false if there was no session. Two round trips. If the
   * outcome is unknown, a retry is safe; it returns false if the first call has ended the session.
   */
  logout(token: string): Promise<boolean>

  /**
   * Returns a page of the sessions that the token's user started with `login`, latest login first; none for a
   * guest session. A page may have fewer than `limit` sessions, even none, if some have just ended: continue
   * as long as there is a `nextCursor`. Logins and logouts between two pages neither skip nor repeat a
   * session. Three round trips, and one more if entries without a session were found and removed.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session of the token has ended;
   *   `ONETRIP_INVALID_INPUT` for an invalid cursor.
   */
  userSessions(token: string, page?: PageOptions): Promise<UserSessionPage>

  /**
   * Ends the session with this id (`userSessions`). Returns false if there is none, or if it belongs to
   * another user. A retry is safe, as with `logout`.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session of the token has ended.
   */
  revokeSession(token: string, id: string): Promise<boolean>

  /**
   * Ends all sessions of the token's user, 100 at a time, and this one last: after a failure, call it again with the
   * same token. Returns their number.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session of the token has ended. If some sessions may have
   *   ended, the error has `mayHaveWritten` and `retrySafe`.
   */
  logoutEverywhere(token: string): Promise<number>

  /**
   * Ends all sessions that a user started with `login`. For administrators. Returns their number. After a failure,
   * call it again.
   *
   * @throws StoreError If some sessions may have ended, the error has `mayHaveWritten` and `retrySafe`.
   */
  endUserSessions(user: string): Promise<number>

  /**
   * Returns everything that the store holds about a user: sessions with views and data, including those that
   * were started with the operation `updateToken`. Walks all sessions of all users, about 1,000 per round trip. May miss a
   * session that starts meanwhile.
   */
  exportUser(user: string, options?: WalkOptions): Promise<UserExport>

  /**
   * Ends all sessions of a user and removes everything that the store holds about them: first the sessions
   * that were started with `login`, then, by a walk as in `exportUser`, all others. Make sure first that the
   * user cannot log in; after a failure, call it again. Returns the number of sessions ended.
   */
  eraseUser(user: string, options?: WalkOptions): Promise<number>

  /**
   * Counts an attempt, such as a login, for each of `subjects` (any text, such as a user or an address), over
   * all processes, in fixed windows of `windowSeconds`, a whole number. The caller decides what to reject. One
   * round trip.
   */
  countAttempts(subjects: readonly string[], windowSeconds: number): Promise<Attempts>

  /**
   * Runs your own update. Its commands share round trips with other calls, and have the same deadline and
   * errors. The first argument of a command must be its key; scripts and functions state the number of keys.
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`; `ONETRIP_INVALID_INPUT` for commands that block or change the shared connection.
   */
  run<Result>(update: Update<Result>): Promise<Result>

  /**
   * Resolves once Redis is ready. Checks the types of the keys that all sessions share (logins, last-seen times,
   * item counts), if the user of Redis may read them. Warns (`onetrip:warning`) if Redis may evict sessions. With
   * partitioned keys, the first start records the number of partitions in Redis, and every start compares it.
   *
   * @param timeoutMs At most a day. Default 10,000.
   * @param options `readOnly`: compares the number of partitions without recording it. Default false.
   * @throws StoreError `ONETRIP_NOT_SENT` if Redis is not ready after `timeoutMs`; `ONETRIP_INVALID_INPUT` if the
   *   data in Redis has another number of partitions, or if one of these keys belongs to another program.
   */
  ready(timeoutMs?: number, options?: { readOnly?: boolean }): Promise<void>

  /**
   * Checks whether Redis serves the store's keys. Returns one entry for each server that holds keys: each primary of a
   * cluster, otherwise one server. A server that has not replied after `timeoutMs` (default: the deadline) has
   * an `error`.
   *
   * @throws StoreError if no server serves its keys.
   */
  ping(timeoutMs?: number): Promise<NodeState[]>

  /**
   * Runs a read-only update without keys, such as INFO, on each server that holds keys: each primary of a
   * cluster, otherwise one server. A server that fails has an `error` instead of a `result`.
   *
   * @throws StoreError as `run`, if the servers are not known.
   */
  runOnEach<Result>(update: Update<Result>): Promise<NodeResult<Result>[]>

  /**
   * Creates another janitor, which you start or run yourself. A janitor ends sessions that are idle or beyond
   * the maximum, rescales the item counts and removes leftovers. There may be several in any number of
   * processes; only one works at a time. Create it once: it holds the position of an unfinished sweep. Needs Redis
   * 7.0 or newer.
   *
   * @throws TypeError for an option that does not exist, has a wrong type or is out of range.
   */
  janitor(limits?: JanitorOptions): Janitor

  /**
   * Graceful shutdown: stops the janitors, waits for the calls in flight with all their round trips, at most
   * for `deadlineMs`, then closes all connections. Calls that start meanwhile are rejected.
   */
  close(): Promise<void>
}
