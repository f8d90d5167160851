import type { Operation } from './command.ts'
import { type Attempts, countAttempts } from './count-attempts.ts'
import { encodeFields } from './data/encode.ts'
import {
  type DataOption,
  type DataPatch,
  type DeclaredFields,
  type MaybeData,
  type PatchOptions,
  type SessionData,
  withDataIf,
} from './data/read.ts'
import { requireWritten, writeData } from './data/write.ts'
import { repeatable, requireSession } from './errors.ts'
import {
  checkKey,
  checkLabel,
  checkLimit,
  checkName,
  checkNumber,
  checkOperation,
  checkStrings,
  checkType,
  MAX_TIMEOUT_MS,
} from './input.ts'
import type { Keys } from './keys.ts'
import {
  checkedStoreOptions,
  type LoginOptions,
  type SessionStoreOptions,
  type Settings,
  senderOf,
  type ViewOptions,
} from './options.ts'
import { becomeReady, type NodeState, pingNodes } from './readiness.ts'
import { type NodeResult, Runner } from './redis/runner.ts'
import { Janitor } from './retention/janitor.ts'
import { type JanitorOptions, ownJanitor } from './retention/options.ts'
import {
  checkToken,
  GUEST,
  isIdle,
  requireActive,
  type Session,
  statesOf,
  touchSession,
} from './sessions/check.ts'
import {
  type RecentSession,
  recentSessions,
  sessionsOf,
  type UserSession,
} from './sessions/list.ts'
import { login, loginFrom } from './sessions/log-in.ts'
import { endAll, endSession, KeepLatest, totalEnded } from './sessions/log-out.ts'
import { DurableEnds } from './sessions/wait-for-durability.ts'
import { SessionWatches } from './sessions/watch.ts'
import { createTokens, type Tokens } from './tokens/tokens.ts'
import { type PopularItem, popularItems, type ViewedItem, viewedItems } from './views/read.ts'
import {
  type RecordedView,
  recordOnce,
  recordOrUndo,
  recordView,
  writeSession,
} from './views/record.ts'

export interface NewSession {
  /** The credential of the session: keep it secret. */
  token: string
  /** When the token expires, in milliseconds since 1970. The session may end earlier. */
  expiresAt: number
}

export interface StoreInfo {
  /** How commands are sent: `batch`, or the name of the sender passed as `sender`. */
  sender: string
  /** Connections, up or not. */
  connections: number
  /** Connections that are up. */
  ready: number
  /** Operations that are waiting for replies. */
  inFlight: number
}

/**
 * A store of logins, recent sessions and viewed items in Redis.
 *
 * It checks the type and range of every argument, and the signature and expiry of every token, before it sends
 * anything. Every function may throw a `StoreError` with `ONETRIP_INVALID_INPUT` (a wrong value), `ONETRIP_WRONG_TYPE`
 * or a code of `run`; with a token also `ONETRIP_INVALID_TOKEN`, `ONETRIP_EXPIRED_TOKEN` or
 * `ONETRIP_UNKNOWN_SESSION` (it has ended). The functions below document only further errors. Unless stated, each takes
 * one round trip, which it shares with concurrent calls.
 *
 * `Fields`: the types of the data fields, which nothing checks at run time (`SessionData`). Default:
 * `SessionDataFields`.
 */
export class SessionStore<Fields extends object = DeclaredFields> {
  /** Signs and verifies the tokens of this store. */
  readonly tokens: Tokens
  /** The names of this store's keys, for commands of your own (`run`). */
  readonly keys: Keys
  readonly #runner: Runner
  readonly #settings: Settings
  readonly #keepLatest: KeepLatest
  readonly #watches: SessionWatches
  readonly #janitors = new Set<Janitor>()
  readonly #sweepKeys: boolean
  readonly #durable: DurableEnds | undefined

  /**
   * Runs a janitor until `close()`, unless `janitor` is `'elsewhere'` or `false`.
   *
   * @throws TypeError if an option does not exist, has a wrong type or is out of range, if the URL of Redis or a secret is
   *   invalid, or if the keys do not work with the sender.
   */
  constructor(options: SessionStoreOptions) {
    const checked = checkedStoreOptions(options)
    const own = ownJanitor(checked.janitor, checked)
    this.tokens = createTokens(options.tokens)
    this.keys = checked.keys
    this.#sweepKeys = checked.prefix !== ''
    this.#runner = new Runner(senderOf(checked), checked)
    this.#settings = { ...checked, runner: this.#runner }
    this.#keepLatest = new KeepLatest(this.#settings)
    this.#watches = new SessionWatches(this.#settings, this.tokens)
    const { redis = '', durable } = checked
    this.#durable = durable && new DurableEnds({ ...checked, redis, durable })
    if (own !== undefined) this.janitor(own).start()
  }

  /** How commands are sent, and the state of the connections. */
  get info(): StoreInfo {
    const { sender, inFlight } = this.#runner
    const { connections = 0, ready = 0 } = sender.connections?.() ?? {}
    return { sender: sender.name, connections, ready, inFlight }
  }

  /**
   * Resolves once Redis is ready. Checks the types of the keys that all sessions share, if the user of Redis may read
   * them. Warns (`onetrip:warning`) if Redis may evict sessions.
   *
   * @param timeoutMs At most a day. Default 10,000.
   * @throws StoreError `ONETRIP_NOT_SENT` if Redis is not ready, or a replica, after `timeoutMs`; `ONETRIP_REFUSED` if it refuses
   *   the store's keys, or to publish the end of sessions (NOPERM); `ONETRIP_INVALID_INPUT` if one of these keys belongs
   *   to another program; `ONETRIP_NOT_DURABLE` if Redis cannot do what the option `durable` needs.
   */
  async ready(timeoutMs = 10_000): Promise<void> {
    checkNumber('timeoutMs', timeoutMs, { min: 0, max: MAX_TIMEOUT_MS })
    await this.#runner.call(async () => {
      await becomeReady(this.#runner, this.keys, timeoutMs)
      await this.#durable?.ready(timeoutMs)
    })
  }

  /**
   * Checks whether Redis serves the store's keys. Returns one entry for each server that holds keys. A server that has
   * not replied after `timeoutMs` (default: the deadline) has an `error`; one that executes reads only has
   * `refusesWrites`. The writes that find this out change nothing.
   *
   * @throws StoreError if no server serves its keys.
   */
  async ping(timeoutMs = this.#settings.deadlineMs): Promise<NodeState[]> {
    checkNumber('timeoutMs', timeoutMs, { min: 1, max: MAX_TIMEOUT_MS })
    return await this.#runner.call(() => pingNodes(this.#runner, this.keys, timeoutMs))
  }

  /**
   * Runs your own operation. Its commands share round trips with other calls, and have the same deadline and
   * errors. The first argument of a command must be its key; scripts and functions state the number of keys.
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`; `ONETRIP_INVALID_INPUT` for commands that block or change the shared connection.
   */
  async run<Result>(operation: Operation<Result>): Promise<Result> {
    checkOperation(operation)
    return await this.#run(operation)
  }

  /**
   * Runs a read-only operation without keys, such as INFO, on each server that holds keys. A server that fails has an
   * `error` instead of a `result`.
   *
   * @throws StoreError as `run`, if the servers are not known.
   */
  async runOnEach<Result>(operation: Operation<Result>): Promise<NodeResult<Result>[]> {
    checkOperation(operation)
    const readOnly = { ...operation, readOnly: true }
    return await this.#runner.call(() => this.#runner.runOnEach(readOnly))
  }

  /**
   * Graceful shutdown: stops the janitors, waits for the calls in flight with all their round trips, at most
   * for `deadlineMs`, then closes all connections. Calls that start meanwhile are rejected.
   */
  async close(): Promise<void> {
    for (const janitor of this.#janitors) void janitor.stop()
    await this.#runner.close()
    await this.#durable?.runner.close()
  }

  /**
   * Creates another janitor, which you start or run yourself. A janitor ends sessions that are idle or beyond
   * the maximum, rescales the item counts and removes leftovers. There may be several in any number of
   * processes; only one works at a time. Create it once: it holds the position of an unfinished sweep. Needs Redis
   * 7.0 or newer.
   *
   * @throws TypeError for an option that does not exist, has a wrong type or is out of range.
   */
  janitor(options: JanitorOptions = {}): Janitor {
    const janitor = new Janitor(this.#settings, options, this.#sweepKeys)
    this.#janitors.add(janitor)
    return janitor
  }

  /**
   * Logs a user in with a new token, and adds the session to the user's list (`userSessions`). Four or five more round
   * trips to end the oldest sessions if the user has more than `maxSessionsPerUser`, and those of concurrent logins of
   * this user. If ending them fails, the login
   * still succeeds, and the next login tries again.
   *
   * With `from`, the session takes over the data and views of a session of a guest or of the same user, and ends that
   * one: two to five round trips instead of one. If ending it fails, the login still succeeds.
   */
  async login(user: string, options: LoginOptions = {}): Promise<NewSession> {
    checkName('user', user)
    checkType('options', options, 'object')
    const { remember = false, label = '', from } = options
    const old = from === undefined ? undefined : this.#validId(from)
    checkType('remember', remember, 'boolean')
    checkLabel(label)
    const session = this.#issue(remember)
    const id = this.tokens.verify(session.token)
    await this.#runner.call(async () => {
      const input = { id, user, label }
      const listed = await (old === undefined
        ? this.#runner.run(login(this.keys, input, this.#settings.now()))
        : loginFrom(this.#runner, this.#settings, { old, session: input }))
      if (listed <= this.#settings.maxSessionsPerUser) return
      await this.#keepLatest.of(user).catch(() => undefined)
    })
    return session
  }

  /**
   * Starts a session without a user with a new token. The session has views and data, and its `user` is null.
   * `login(user, { from: token })` turns it into a user's session.
   */
  async loginGuest(): Promise<NewSession> {
    const session = this.#issue()
    const guest = { id: this.tokens.verify(session.token), user: GUEST }
    await this.#run(writeSession(this.keys, guest, this.#settings.now()))
    return session
  }

  /**
   * Returns the user of the session, null for a guest session, and with `{ data: true }` also the session's data. Writes
   * nothing.
   */
  async checkToken<Asked extends DataOption>(
    token: string,
    options?: Asked,
  ): Promise<MaybeData<Session, Asked, Fields>> {
    const id = this.tokens.verify(token)
    const check = withDataIf<Session, Asked, Fields>(
      options,
      checkToken(this.keys, id),
      this.keys,
      id,
    )
    return await this.#runner.call(() => this.#active(check))
  }

  /**
   * As `checkToken`, and refreshes the session, unless it was last seen less than `unlessWithinSeconds` (default 0)
   * ago. The refresh takes a second round trip, which the call does not wait for; if it fails, the session keeps its
   * time of last use.
   */
  async touch(token: string, unlessWithinSeconds = 0): Promise<Session> {
    const id = this.tokens.verify(token)
    checkNumber('unlessWithinSeconds', unlessWithinSeconds, { min: 0 })
    return await this.#runner.call(async () => {
      const session = await this.#active(checkToken(this.keys, id))
      const lastSeenAt = this.#settings.now()
      if (session.lastSeenAt > lastSeenAt - 1000 * unlessWithinSeconds) return session
      this.#runner.run(touchSession(this.keys, id, lastSeenAt)).catch(() => undefined)
      return { ...session, lastSeenAt }
    })
  }

  /**
   * Ends the session and removes its records. A concurrent view does not bring it back (`endSessions` and `recordView`
   * say why). Returns false if there was no session. A second round trip, which the call does not wait for, removes the
   * session from its user's list. If the outcome is unknown, a retry is safe; it returns false if the first call has
   * ended the session.
   */
  async logout(token: string): Promise<boolean> {
    const id = this.tokens.verify(token)
    return await this.#ending(() => endSession(this.#settings, id))
  }

  /** The most recently seen sessions, at most `limit` (1 to 1,000, default 50), newest first. Two round trips. */
  async recentSessions(limit = 50): Promise<RecentSession[]> {
    checkLimit(limit)
    return await this.#runner.call(() => recentSessions(this.#settings, limit))
  }

  /**
   * Records that the session viewed the item, and refreshes the session. With `{ data: true }` it also returns the
   * session's data.
   *
   * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session has ended; the view was undone in a second
   *   round trip (if the janitor halved the counts in between, the item's count is one view too low).
   *   `ONETRIP_OUTCOME_UNKNOWN` with the error as its cause if the undo failed: the item may still be
   *   counted, and the rest stays until a sweep with `sweepKeys`. With an idempotency key, the first error has
   *   `mayHaveWritten` if a view of an earlier call with this key may still be counted.
   */
  async recordView<Asked extends ViewOptions>(
    token: string,
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked, Fields>> {
    const id = this.tokens.verify(token)
    checkName('item', item)
    const idempotencyKey = options?.idempotencyKey
    const plain = recordView(this.keys, { id, item }, this.#settings.now())
    const view = withDataIf<RecordedView, Asked, Fields>(options, plain, this.keys, id)
    if (idempotencyKey !== undefined) {
      checkKey(idempotencyKey)
      const repeatable = { id, item, idempotencyKey }
      return await this.#repeatable(() => recordOnce(this.#settings, repeatable, view))
    }
    return await this.#runner.call(() => recordOrUndo(this.#settings, { id, item }, view))
  }

  /** The 25 most recently viewed items of this session, newest first. */
  async viewedItems(token: string): Promise<ViewedItem[]> {
    return requireSession(await this.#run(viewedItems(this.keys, this.tokens.verify(token))))
  }

  /** The most viewed items, at most `limit` (1 to 1,000, default 10), most viewed first. */
  async popularItems(limit = 10): Promise<PopularItem[]> {
    checkLimit(limit)
    return await this.#run(popularItems(this.keys, limit))
  }

  /**
   * Returns the session's data. Writes nothing.
   *
   * @throws StoreError `ONETRIP_UNREADABLE_DATA`, as all functions that read data, if a field in Redis is not JSON.
   */
  async data(token: string): Promise<SessionData<Fields>> {
    return (await this.checkToken(token, { data: true })).data
  }

  /**
   * Changes fields of the session's data and refreshes the session. Each value is stored as JSON; undefined
   * removes the field; all other fields stay. A patch is atomic. Concurrent patches of different fields all
   * take effect; of the same field the last one wins, unless `ifVersion` is given.
   *
   * @returns The new version.
   * @throws StoreError `ONETRIP_CONFLICT` if the version of the data is not `ifVersion`; `ONETRIP_INVALID_INPUT` for a
   *   value that is not JSON or exceeds a limit.
   */
  async patch(
    token: string,
    fields: DataPatch<Fields>,
    options: PatchOptions = {},
  ): Promise<{ version: number }> {
    const id = this.tokens.verify(token)
    checkType('options', options, 'object')
    const { ifVersion } = options
    const encoded = encodeFields(fields)
    if (ifVersion !== undefined) checkNumber('ifVersion', ifVersion, VERSIONS)
    const write = { id, mode: 'patch', fields: encoded, ifVersion } as const
    const { now, idleSeconds } = this.#settings
    const times = { now: now(), idleBefore: now() - 1000 * idleSeconds }
    return requireWritten(await this.#run(writeData(this.keys, write, times)), ifVersion)
  }

  /**
   * Returns the sessions that the token's user started with `login`, latest login first; none for a guest session.
   * Three round trips, two more for each further 100 sessions, and one more if entries without a session were found
   * and removed.
   */
  async userSessions(token: string): Promise<{ sessions: UserSession[] }> {
    const own = this.tokens.verify(token)
    return await this.#repeatable(async () => {
      const { user } = await this.#active(checkToken(this.keys, own))
      const sessions = user === null ? [] : await sessionsOf(this.#settings, user)
      const active = sessions.filter((session) => !isIdle(this.#settings, session))
      return { sessions: active.map((session) => ({ ...session, current: session.id === own })) }
    })
  }

  /**
   * Ends the session with this id (`userSessions`). Returns false if there is none, or if it belongs to
   * another user. A retry is safe, as with `logout`. Two round trips.
   */
  async revokeSession(token: string, id: string): Promise<boolean> {
    const own = this.tokens.verify(token)
    checkType('id', id, 'string')
    return await this.#ending(async () => {
      const [session, other] = await this.#runner.run(statesOf(this.keys, [own, id]))
      const { user } = requireActive(this.#settings, session)
      return user !== null && other?.user === user && (await endSession(this.#settings, id))
    })
  }

  /**
   * Ends all sessions of the token's user, 100 at a time, and this one last: after a failure, call it again with the
   * same token. Returns their number. Several round trips.
   *
   * @throws StoreError If some sessions may have ended, the error has `mayHaveWritten` and `retrySafe`.
   */
  async logoutEverywhere(token: string): Promise<number> {
    const own = this.tokens.verify(token)
    return await this.#ending(() => totalEnded(this.#endEverywhere(own)))
  }

  /** As `logoutEverywhere`, but keeps the session of the token. */
  async endOtherSessions(token: string): Promise<number> {
    const own = this.tokens.verify(token)
    return await this.#ending(() => totalEnded(this.#endOthers(own)))
  }

  /**
   * Ends all sessions that a user started with `login`. For administrators. Returns their number. After a failure,
   * call it again. Several round trips.
   *
   * @throws StoreError If some sessions may have ended, the error has `mayHaveWritten` and `retrySafe`.
   */
  async endUserSessions(user: string): Promise<number> {
    checkName('user', user)
    return await this.#ending(() => totalEnded(endAll(this.#settings, user)))
  }

  /**
   * Counts an attempt, such as a login, for each of `subjects` (any text, such as a user or an address), over
   * all processes, in fixed windows of `windowSeconds`, a whole number. The caller decides what to reject.
   */
  async countAttempts(subjects: readonly string[], windowSeconds: number): Promise<Attempts> {
    checkStrings('subjects', subjects)
    checkNumber('windowSeconds', windowSeconds, { min: 1, max: 1e9, integer: true })
    return await this.#run(
      countAttempts(this.keys, { subjects, windowSeconds }, this.#settings.now()),
    )
  }

  /**
   * Checks the session, and calls `onEnd` once when it ends, in any process (by logout, revocation, the maximum of a
   * user, a login that takes it over, or the janitor), or when the token expires: for an open
   * WebSocket, which sends no further requests. The WebSocket does not count as use of the session: call `touch`.
   *
   * The first watch opens a connection that subscribes. A lost one is replaced; then the watched sessions are checked,
   * 100 in one round trip.
   *
   * @returns A function that stops watching. Resolves when Redis has confirmed the subscription.
   * @throws TypeError if the sender cannot subscribe; StoreError `ONETRIP_NOT_SENT`, or `ONETRIP_REFUSED` if the user
   *   of Redis lacks a permission.
   */
  async watchSession(token: string, onEnd: () => unknown): Promise<() => void> {
    return await this.#runner.call(() =>
      this.#watches.watch(token, onEnd, (id) => this.#active(checkToken(this.keys, id))),
    )
  }

  /** When this token expires, in milliseconds since 1970. The session may end earlier. No round trip. */
  tokenExpiresAt(token: string): number {
    return this.tokens.expiresAt(token)
  }

  /** Whether `tokens.renewAfterSeconds` is set. */
  get renewsTokens(): boolean {
    return this.tokens.renews
  }

  /**
   * Returns a token of the same session that expires later. Returns the same token as long as it is not older than
   * `tokens.renewAfterSeconds`, and if it already lives until `tokens.maxLifetimeSeconds`. Call it after a function
   * that checks the session. No round trip.
   */
  renewToken(token: string): NewSession {
    const renewed = this.tokens.renew(token)
    return { token: renewed, expiresAt: this.tokens.expiresAt(renewed) }
  }

  /** Runs an operation as a call of its own. */
  #run<Result>(operation: Operation<Result>): Promise<Result> {
    return this.#runner.call(() => this.#runner.run(operation))
  }

  /** Runs the round trips of a call that may be repeated. */
  async #repeatable<Result>(trips: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#runner.call(trips)
    } catch (error) {
      throw repeatable(error)
    }
  }

  /** Runs the round trips of a call that ends sessions, and waits as the option `durable` says. */
  #ending<Result>(trips: () => Promise<Result>): Promise<Result> {
    return this.#repeatable(async () => (this.#durable ? this.#durable.after(trips) : trips()))
  }

  #issue(remember = false): NewSession {
    const token = this.tokens.issue(remember)
    return { token, expiresAt: this.tokens.expiresAt(token) }
  }

  /** Undefined for an invalid or expired token: clients send it, so it must not make a login fail. */
  #validId(token: string): string | undefined {
    checkType('from', token, 'string')
    try {
      return this.tokens.verify(token)
    } catch {
      return undefined
    }
  }

  /** @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session has ended or is idle. */
  async #active<Found extends Session>(operation: Operation<Found | undefined>): Promise<Found> {
    return requireActive(this.#settings, await this.#runner.run(operation))
  }

  async *#endOthers(own: string): AsyncGenerator<number> {
    const { user } = await this.#active(checkToken(this.keys, own))
    if (user !== null) yield* endAll(this.#settings, user, own)
  }

  /** Ends the caller's own session last, because the caller needs it to repeat a call that has failed. */
  async *#endEverywhere(own: string): AsyncGenerator<number> {
    yield* this.#endOthers(own)
    if (await endSession(this.#settings, own)) yield 1
  }
}

const VERSIONS = { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true }
