import { callsOf, contextOf } from '../core/context.ts'
import { decodeReadable, readStored, type SessionData } from '../core/data/data.ts'
import type { SwappedField } from '../core/data/data-fields.ts'
import { sessionData } from '../core/data/session-data.ts'
import { idempotent, StoreError } from '../core/errors.ts'
import { checkNumber, checkString } from '../core/input.ts'
import { EXTERNAL, type Keys } from '../core/keys.ts'
import { type Command, type Operation, timeOf } from '../core/operation.ts'
import { forgetSessions } from '../core/sessions/list-operations.ts'
import { batches, LOGINS_PER_STEP, SESSIONS_PER_STEP, walk } from '../core/sessions/walk.ts'
import type { SessionStore } from '../core/store.ts'
import {
  endCopy,
  endWithTombstone,
  MAX_TOMBSTONE_SECONDS,
  MIN_TOMBSTONE_SECONDS,
  shortenTombstone,
  tombstoneSeconds,
} from './tombstones.ts'

const MAX_ID_LENGTH = 1_024
const MAX_BLOCKED_MS = 1000 * MAX_TOMBSTONE_SECONDS

export interface ExternalSession {
  id: string
  /** Time of the last write, in milliseconds since 1970. */
  lastSeenAt: number
  data: SessionData
}

/**
 * Sessions whose ids other software creates and verifies: for adapters such as that of express-session. The
 * store treats them as guest sessions with data: they count towards the janitor's `maxSessions`, end when they
 * are idle, and belong to no user. Tokens cannot reach them.
 *
 * Fields may have any names. Unless `dataLimits` are set, a session has at most 10,000 fields, a field 8 MiB of JSON,
 * and a write 32 MiB.
 *
 * All functions throw a `StoreError`: `ONETRIP_INVALID_INPUT` unless the id is a string of 1 to 1,024
 * characters, and the errors of `store.patch`.
 */
export interface ExternalSessions {
  /** The store's idle timeout, in seconds. Each write of a session restarts it. */
  readonly idleSeconds: number

  /** Returns the data; undefined if the session has ended or is idle. One round trip. */
  read(id: string): Promise<SessionData | undefined>

  /**
   * Replaces all data of a session, or creates the session. Returns false, and writes nothing, if `end` ended it
   * within the last five minutes. One round trip.
   */
  put(id: string, fields: Readonly<Record<string, unknown>>): Promise<boolean>

  /**
   * Creates a session that another store has, unless it exists or `end` ended it. One round trip.
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
   * session has ended or is idle. One round trip.
   *
   * @param swap One more field, which is written only if no other request has changed it.
   */
  patch(
    id: string,
    fields: Readonly<Record<string, unknown>>,
    swap?: SwappedField,
  ): Promise<boolean>

  /**
   * Ends a session. Returns whether it existed. It cannot be created again for `blockedSeconds` (300 to 34,560,000,
   * which is 400 days; default 300), or for `blockedMs` of `add`, if that is longer.
   */
  end(id: string, blockedSeconds?: number): Promise<boolean>

  /**
   * All external sessions that are not idle, without fields that are not JSON in Redis. Walks all logins of the
   * store. For administrators.
   */
  walk(): AsyncGenerator<ExternalSession>
}

export interface AddOptions {
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
  const { runner, keys, now, idleSeconds, rules } = context
  const byId = sessionData(context, rules.external)
  const calls = callsOf<Omit<ExternalSessions, 'idleSeconds' | 'walk'>>(context, {
    read: async (id) => await byId.read(externalId(id)),
    put: async (id, fields) => (await byId.write(externalId(id), 'create', fields)) !== undefined,
    async add(id, fields, options = {}) {
      const { leftMs = 1000 * idleSeconds, blockedMs = MAX_BLOCKED_MS, isCopy = false } = options
      checkNumber('leftMs', leftMs, { min: 0 })
      checkNumber('blockedMs', blockedMs, { min: 1 })
      const isLimited = Number.isFinite(idleSeconds) && leftMs < 1000 * idleSeconds
      const write = {
        ifVersion: 0,
        seenAt: isLimited ? now() - (1000 * idleSeconds - leftMs) : now(),
        blockedMs: Math.ceil(Math.min(blockedMs, MAX_BLOCKED_MS)),
      }
      try {
        const mode = isCopy ? 'copy' : 'create'
        return (await byId.write(externalId(id), mode, fields, write)) ? 'added' : 'ended'
      } catch (error) {
        if (error instanceof StoreError && error.code === 'ONETRIP_CONFLICT') return 'exists'
        throw error
      }
    },
    endCopy: async (id) => await runner.run(endCopy(keys, externalId(id))),
    async limitBlock(id, seconds) {
      await runner.run(shortenTombstone(keys, externalId(id), tombstoneSeconds(seconds)))
    },
    patch: async (id, fields, swap) =>
      (await byId.write(externalId(id), 'patch', fields, { swap })) !== undefined,
    end: idempotent(async (id, blockedSeconds = MIN_TOMBSTONE_SECONDS) => {
      const seconds = tombstoneSeconds(blockedSeconds)
      const user = await runner.run(endWithTombstone(keys, externalId(id), seconds))
      if (user) await runner.run(forgetSessions(keys, user, [externalId(id)]))
      return user !== undefined
    }),
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
