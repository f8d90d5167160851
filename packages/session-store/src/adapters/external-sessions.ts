import { callsOf, contextOf } from '../core/context.ts'
import { decodeReadable, readStored, type SessionData } from '../core/data/data.ts'
import { externalRules, type SwappedField } from '../core/data/data-fields.ts'
import { sessionData, type WriteOptions } from '../core/data/session-data.ts'
import { idempotent, StoreError } from '../core/errors.ts'
import { checkName, checkNumber, checkString } from '../core/input.ts'
import { EXTERNAL, isExternal, type Keys } from '../core/keys.ts'
import { type Command, type Operation, timeOf } from '../core/operation.ts'
import { enlistSession } from '../core/sessions/list-operations.ts'
import {
  GUEST,
  isIdle,
  MAX_TOMBSTONE_SECONDS,
  MIN_TOMBSTONE_SECONDS,
  tombstoneSeconds,
} from '../core/sessions/session-operations.ts'
import {
  type ListedSession,
  totalEnded,
  userSessionLists,
} from '../core/sessions/user-session-lists.ts'
import { batches, LOGINS_PER_STEP, SESSIONS_PER_STEP, walk } from '../core/sessions/walk.ts'
import type { SessionStore } from '../core/store.ts'
import { endCopy, shortenTombstone } from './tombstones.ts'

const MAX_ID_LENGTH = 1_024
const MAX_BLOCKED_MS = 1000 * MAX_TOMBSTONE_SECONDS

export interface ExternalSession {
  id: string
  /** Time of the last write, in milliseconds since 1970. */
  lastSeenAt: number
  data: SessionData
}

/** Whose session it is: null for nobody. */
interface OwnedData extends SessionData {
  user: string | null
}

/**
 * Sessions whose ids other software creates and verifies: for adapters such as that of express-session. They
 * count towards the janitor's `maxSessions`, and end when they are idle. Tokens cannot reach them.
 *
 * A session with a user counts towards `maxSessionsPerUser`, and all functions of the store for a user's sessions
 * include it. Ended by one of them, it cannot be created again for `idleSeconds` (300 to 34,560,000). Other sessions
 * are guest sessions with data.
 *
 * Fields may have any names. A session has at most 10,000 fields, a field 8 MiB of JSON, and a write 32 MiB.
 *
 * All functions throw a `StoreError`: `ONETRIP_INVALID_INPUT` unless the id is a string of 1 to 1,024
 * characters, and the errors of `store.patch`.
 */
export interface ExternalSessions {
  /** The store's idle timeout, in seconds. Each write of a session restarts it. */
  readonly idleSeconds: number

  /** Returns user and data; undefined if the session has ended or is idle. One round trip. */
  read(id: string): Promise<OwnedData | undefined>

  /**
   * Replaces all data of a session, or creates the session. Returns false, and writes nothing, if the session was
   * ended and cannot be created again yet. One round trip; see `UserOption`.
   */
  put(id: string, fields: Readonly<Record<string, unknown>>, options?: UserOption): Promise<boolean>

  /**
   * Creates a session that another store has, unless it exists or was ended. One round trip; see `UserOption`.
   *
   * With `isCopy`, the other store keeps the session, and its state stays valid until somebody writes the copy. A
   * copy has version 0 until then: `add` replaces it, and `endCopy` ends it.
   */
  add(
    id: string,
    fields: Readonly<Record<string, unknown>>,
    options?: AddOptions,
  ): Promise<'added' | 'exists' | 'ended'>

  /** Ends a session that nobody has written since `add` copied it. One round trip. */
  endCopy(id: string): Promise<void>

  /**
   * Limits how long an added session cannot be created again after its end, in seconds (at least 300). Call it when
   * the other store no longer has the session. One round trip.
   */
  limitBlock(id: string, seconds: number): Promise<void>

  /**
   * Changes these fields; undefined removes a field; all others stay. Returns false, and writes nothing, if the
   * session has ended or is idle. One round trip; see `UserOption`.
   */
  patch(
    id: string,
    fields: Readonly<Record<string, unknown>>,
    options?: ExternalPatchOptions,
  ): Promise<boolean>

  /**
   * Ends a session. Returns whether it existed. It cannot be created again for `blockedSeconds` (300 to 34,560,000,
   * which is 400 days; default 300), or for `blockedMs` of `add`, if that is longer.
   */
  end(id: string, blockedSeconds?: number): Promise<boolean>

  /**
   * The external sessions of a user, latest login first: `loggedInAt` is when the session became one of the user. Two
   * round trips; see `store.userSessions`.
   */
  ofUser(user: string): Promise<{ sessions: ListedSession[] }>

  /**
   * Ends all sessions of a user, also those of tokens, except this one. Returns their number. Errors as of
   * `store.endUserSessions`.
   */
  endOthers(user: string, id: string): Promise<number>

  /**
   * All external sessions that are not idle, without fields that are not JSON in Redis. Slow: reads every login. For
   * administrators.
   */
  walk(): AsyncGenerator<ExternalSession>
}

export interface UserOption {
  /**
   * The user of the session from now on; null for none. Default: unchanged; a new session has none. A change of the
   * user takes two more round trips: the session is added to the user's list before it becomes the user's.
   */
  user?: string | null | undefined
}

export interface ExternalPatchOptions extends UserOption {
  /** One more field, which is written only if no other request has changed it. */
  swap?: SwappedField | undefined
  /** Write only if the data has this version, otherwise fail with `ONETRIP_CONFLICT`. */
  ifVersion?: number | undefined
}

export interface AddOptions extends UserOption {
  /** Idle timeout until the next write, in ms. Default and maximum: the idle timeout of the store. */
  leftMs?: number
  /**
   * How long the session cannot be created again, in ms: the remaining lifetime in the other store. Default and
   * maximum: 400 days.
   */
  blockedMs?: number
  /** Default false. */
  isCopy?: boolean
}

/** Reads these sessions. Keys of each: recent, data. */
function contentsOf(keys: Keys, ids: readonly string[]): Operation<ExternalSession[]> {
  return {
    commands: ids.flatMap((id): Command[] => [
      ['ZSCORE', keys.recent(id), id],
      ['HGETALL', keys.data(id)],
    ]),
    readOnly: true,
    read: (replies) =>
      ids.map((id, index) => ({
        id: id.slice(EXTERNAL.length),
        lastSeenAt: timeOf(replies[2 * index]),
        data: decodeReadable(readStored(replies[2 * index + 1])).data,
      })),
  }
}

/**
 * The sessions of a store whose ids other software creates.
 *
 * @throws TypeError unless `createSessionStore` created the store.
 */
export function externalSessions(store: SessionStore): ExternalSessions {
  const context = contextOf(store)
  const { runner, keys, now, idleSeconds, maxSessionsPerUser } = context
  const byId = sessionData(context, externalRules)
  const lists = userSessionLists(context)

  /** Returns false if there is no session and none was created. */
  async function write(
    id: string,
    mode: 'create' | 'copy' | 'patch',
    fields: Readonly<Record<string, unknown>>,
    { user: owner, ...options }: UserOption & Omit<WriteOptions, 'user'> = {},
  ): Promise<boolean> {
    if (typeof owner !== 'undefined' && owner !== null) checkName('user', owner)
    const user = owner === null ? GUEST : owner
    let listed = 0
    const enlist = async () => {
      if (user) listed = await runner.run(enlistSession(keys, { id, user }, now()))
    }
    const written = await byId.write(id, mode, fields, { ...options, user, enlist })
    if (written === undefined) return false
    // If either fails, reading the list or the next login does it.
    if (written.left) lists.forget(written.left, [id]).catch(() => undefined)
    if (user && listed > maxSessionsPerUser) {
      await lists.endOldest(user, listed - maxSessionsPerUser, id).catch(() => undefined)
    }
    return true
  }

  const calls = callsOf<Omit<ExternalSessions, 'idleSeconds' | 'walk'>>(context, {
    async read(id) {
      const found = await byId.read(externalId(id))
      return found && { user: found.user, ...found.data }
    },
    put: async (id, fields, { user } = {}) =>
      await write(externalId(id), 'create', fields, { user }),
    async add(id, fields, options = {}) {
      const { leftMs = 1000 * idleSeconds, blockedMs = MAX_BLOCKED_MS, isCopy = false } = options
      const { user } = options
      checkNumber('leftMs', leftMs, { min: 0 })
      checkNumber('blockedMs', blockedMs, { min: 1 })
      const isLimited = Number.isFinite(idleSeconds) && leftMs < 1000 * idleSeconds
      const added = {
        user,
        ifVersion: 0,
        seenAt: isLimited ? now() - (1000 * idleSeconds - leftMs) : now(),
        blockedMs: Math.ceil(Math.min(blockedMs, MAX_BLOCKED_MS)),
      }
      try {
        const mode = isCopy ? 'copy' : 'create'
        return (await write(externalId(id), mode, fields, added)) ? 'added' : 'ended'
      } catch (error) {
        if (error instanceof StoreError && error.code === 'ONETRIP_CONFLICT') return 'exists'
        throw error
      }
    },
    async endCopy(id) {
      const user = await runner.run(endCopy(keys, externalId(id)))
      if (user) lists.forget(user, [externalId(id)]).catch(() => undefined)
    },
    async limitBlock(id, seconds) {
      await runner.run(shortenTombstone(keys, externalId(id), tombstoneSeconds(seconds)))
    },
    patch: async (id, fields, options) => await write(externalId(id), 'patch', fields, options),
    end: idempotent(
      async (id, blockedSeconds = MIN_TOMBSTONE_SECONDS) =>
        await lists.end(externalId(id), tombstoneSeconds(blockedSeconds)),
    ),
    async ofUser(user) {
      checkName('user', user)
      const sessions = await lists.sessionsOf(user)
      return {
        sessions: sessions
          .filter((session) => isExternal(session.id) && !isIdle(context, session))
          .map(({ id, ...times }) => ({ id: id.slice(EXTERNAL.length), ...times })),
      }
    },
    async endOthers(user, id) {
      checkName('user', user)
      return await totalEnded(lists.endAll(user, externalId(id)))
    },
  })

  async function* walkAll(): AsyncGenerator<ExternalSession> {
    const idleBefore = () => now() - 1000 * idleSeconds
    const seen = new Set<string>() // HSCAN may return an id twice
    for (const { login } of keys.parts()) {
      const options = { count: LOGINS_PER_STEP, match: `${EXTERNAL}*` }
      for await (const entries of walk(runner, 'HSCAN', login, options)) {
        const ids = entries.map(([id]) => id).filter((id) => !seen.has(id))
        for (const id of ids) seen.add(id)
        for (const batch of batches(ids, SESSIONS_PER_STEP)) {
          const sessions = await runner.run(contentsOf(keys, batch))
          for (const session of sessions) if (session.lastSeenAt >= idleBefore()) yield session
        }
      }
    }
  }

  return {
    idleSeconds,
    ...calls,
    async *walk() {
      runner.begin()
      try {
        yield* walkAll()
      } finally {
        runner.end()
      }
    },
  }
}

function externalId(id: string): string {
  checkString('id', id)
  if (id.length >= 1 && id.length <= MAX_ID_LENGTH) return EXTERNAL + id
  const message = `id must have 1 to ${MAX_ID_LENGTH} characters`
  throw new StoreError('ONETRIP_INVALID_INPUT', message)
}
