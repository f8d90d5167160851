import { StoreError } from '../errors.ts'
import { checkNumber, checkString } from '../input.ts'
import { EXTERNAL, type Keys } from '../keys.ts'
import type { Runner } from '../runner.ts'
import { type Command, timeOf, type Update } from '../updates.ts'
import { decodeReadable, readStored, type SessionData } from './data.ts'
import type { sessionData } from './session-data.ts'

const MAX_ID_LENGTH = 1_024

export interface ExternalSession {
  id: string
  /** When it was last written, in milliseconds since 1970. */
  lastSeenAt: number
  data: SessionData
}

/**
 * Sessions whose ids other software makes and checks: for adapters such as that of express-session. To the
 * store they are guest sessions with data: they count towards the janitor's `maxSessions`, end when they
 * are idle, and belong to no user. No token leads to them.
 *
 * All functions throw a `StoreError`: `ONETRIP_INVALID_INPUT` for an id that is not a string of 1 to 1,024
 * characters, and as `store.patch`.
 */
export interface ExternalSessions {
  /** The store's idle timeout, in seconds. Each write of a session begins it anew. */
  readonly idleSeconds: number

  /** Undefined when the session is gone or idle. One round trip. */
  read(id: string): Promise<SessionData | undefined>

  /**
   * Replaces all data of a session, or creates it. Returns false when `end` ended the session within the
   * last five minutes: nothing was written then. One round trip.
   */
  put(id: string, fields: Readonly<Record<string, unknown>>): Promise<boolean>

  /**
   * Creates a session unless there is one, or it was ended within the last five minutes. One round trip.
   *
   * @param leftMs When it becomes idle unless it is used. At most, and by default, the idle timeout.
   */
  add(
    id: string,
    fields: Readonly<Record<string, unknown>>,
    leftMs?: number,
  ): Promise<'added' | 'exists' | 'ended'>

  /**
   * Changes these fields and leaves all others alone; undefined removes one. Returns false when the session
   * is gone or idle: nothing was written then. One round trip.
   */
  patch(id: string, fields: Readonly<Record<string, unknown>>): Promise<boolean>

  /** Ends a session. For five minutes it cannot be created again. Returns whether there was one. */
  end(id: string): Promise<boolean>

  /**
   * All of these sessions that are not idle, without fields that are not JSON in Redis. Walks all logins of
   * the store: for administrators.
   */
  walk(): AsyncGenerator<ExternalSession>
}

const LOGINS_PER_STEP = 1_000
const SESSIONS_PER_STEP = 20

/** One step of a walk over the external sessions of one part. Keys: login. */
function walkStep(login: string, cursor: string): Update<{ cursor: string; ids: string[] }> {
  return {
    commands: [['HSCAN', login, cursor, 'MATCH', `${EXTERNAL}*`, 'COUNT', LOGINS_PER_STEP]],
    readOnly: true,
    read([reply]) {
      const [next, pairs] = reply as readonly [string, readonly string[]]
      return { cursor: String(next), ids: pairs.filter((_, index) => index % 2 === 0) }
    },
  }
}

/** Keys of each: recent, data. */
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

interface Parts {
  runner: Pick<Runner, 'run'>
  keys: Keys
  now: () => number
  idleSeconds: number
  byId: ReturnType<typeof sessionData>
}

export function externalSessions(parts: Parts): ExternalSessions {
  const { runner, keys, now, idleSeconds, byId } = parts
  return {
    idleSeconds,
    read: async (id) => await byId.read(own(id)),
    put: async (id, fields) => (await byId.write(own(id), 'create', fields)) !== undefined,
    async add(id, fields, leftMs = 1000 * idleSeconds) {
      checkNumber('leftMs', leftMs, { min: 0 })
      const seenAt = now() - Math.max(0, 1000 * idleSeconds - leftMs)
      try {
        const written = await byId.write(own(id), 'create', fields, 0, seenAt)
        return written ? 'added' : 'ended'
      } catch (error) {
        if (error instanceof StoreError && error.code === 'ONETRIP_CONFLICT') return 'exists'
        throw error
      }
    },
    patch: async (id, fields) => (await byId.write(own(id), 'patch', fields)) !== undefined,
    end: async (id) => await byId.end(own(id)),
    async *walk() {
      const idleBefore = () => now() - 1000 * idleSeconds
      const seen = new Set<string>() // HSCAN may return one twice
      for (const { login } of keys.parts()) {
        let cursor = '0'
        do {
          const step = await runner.run(walkStep(login, cursor))
          cursor = step.cursor
          const ids = step.ids.filter((id) => !seen.has(id))
          for (const id of ids) seen.add(id)
          for (let at = 0; at < ids.length; at += SESSIONS_PER_STEP) {
            const some = await runner.run(contentsOf(keys, ids.slice(at, at + SESSIONS_PER_STEP)))
            for (const session of some) if (session.lastSeenAt >= idleBefore()) yield session
          }
        } while (cursor !== '0')
      }
    },
  }
}

function own(id: string): string {
  checkString('id', id)
  if (id.length >= 1 && id.length <= MAX_ID_LENGTH) return EXTERNAL + id
  const message = `id must have 1 to ${MAX_ID_LENGTH} characters`
  throw new StoreError('ONETRIP_INVALID_INPUT', message)
}
