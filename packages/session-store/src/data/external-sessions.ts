import { StoreError } from '../errors.ts'
import { checkNumber, checkString } from '../input.ts'
import { EXTERNAL, type Keys } from '../keys.ts'
import type { Runner } from '../runner.ts'
import { type Command, timeOf, type Update } from '../updates.ts'
import { batches, LOGINS_PER_STEP, SESSIONS_PER_STEP, walk } from '../walk.ts'
import { decodeReadable, readStored, type SessionData } from './data.ts'
import type { sessionData } from './session-data.ts'

const MAX_ID_LENGTH = 1_024

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
   * Creates a session, unless it exists or was ended within the last five minutes. One round trip.
   *
   * @param leftMs Idle timeout until the next write. Default and maximum: the idle timeout of the store.
   */
  add(
    id: string,
    fields: Readonly<Record<string, unknown>>,
    leftMs?: number,
  ): Promise<'added' | 'exists' | 'ended'>

  /**
   * Changes these fields; undefined removes a field; all others stay. Returns false, and writes nothing, if the
   * session has ended or is idle. One round trip.
   */
  patch(id: string, fields: Readonly<Record<string, unknown>>): Promise<boolean>

  /** Ends a session. It cannot be created again for five minutes. Returns whether it existed. */
  end(id: string): Promise<boolean>

  /**
   * All external sessions that are not idle, without fields that are not JSON in Redis. Walks all logins of the
   * store. For administrators.
   */
  walk(): AsyncGenerator<ExternalSession>
}

/** Reads these sessions. Keys of each: recent, data. */
function contentsOf(keys: Keys, ids: readonly string[]): Update<ExternalSession[]> {
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

interface ExternalContext {
  runner: Pick<Runner, 'run'>
  keys: Keys
  now: () => number
  idleSeconds: number
  byId: ReturnType<typeof sessionData>
}

export function externalSessions({
  runner,
  keys,
  now,
  idleSeconds,
  byId,
}: ExternalContext): ExternalSessions {
  return {
    idleSeconds,
    read: async (id) => await byId.read(externalId(id)),
    put: async (id, fields) => (await byId.write(externalId(id), 'create', fields)) !== undefined,
    async add(id, fields, leftMs = 1000 * idleSeconds) {
      checkNumber('leftMs', leftMs, { min: 0 })
      const seenAt = now() - Math.max(0, 1000 * idleSeconds - leftMs)
      try {
        const written = await byId.write(externalId(id), 'create', fields, 0, seenAt)
        return written ? 'added' : 'ended'
      } catch (error) {
        if (error instanceof StoreError && error.code === 'ONETRIP_CONFLICT') return 'exists'
        throw error
      }
    },
    patch: async (id, fields) => (await byId.write(externalId(id), 'patch', fields)) !== undefined,
    end: async (id) => await byId.end(externalId(id)),
    async *walk() {
      const idleBefore = () => now() - 1000 * idleSeconds
      const seen = new Set<string>() // HSCAN may return an id twice
      for (const { login } of keys.parts()) {
        let cursor: string | undefined
        do {
          const options = { cursor, count: LOGINS_PER_STEP, match: `${EXTERNAL}*` }
          const step = await runner.run(walk('HSCAN', login, options))
          cursor = step.cursor
          const ids = step.entries.map(([id]) => id).filter((id) => !seen.has(id))
          for (const id of ids) seen.add(id)
          for (const batch of batches(ids, SESSIONS_PER_STEP)) {
            const sessions = await runner.run(contentsOf(keys, batch))
            for (const session of sessions) if (session.lastSeenAt >= idleBefore()) yield session
          }
        } while (cursor !== undefined)
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
