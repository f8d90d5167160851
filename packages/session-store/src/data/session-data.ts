import { requireSession, StoreError } from '../errors.ts'
import { checkNumber, checkObject } from '../input.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../runner.ts'
import { forgetSessions } from '../sessions/user-sessions.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { checkToken, GUEST, updateToken } from '../updates.ts'
import {
  type DataWrite,
  endWithTombstone,
  type PatchOptions,
  type SessionData,
  withData,
  writeData,
} from './data.ts'
import { type DataLimits, encodeFields } from './data-fields.ts'

/** Must be longer than a request that loaded the session before it ended. */
const TOMBSTONE_SECONDS = 300

interface SessionDataContext {
  runner: Pick<Runner, 'run'>
  keys: Keys
  /** Milliseconds since 1970. */
  now: () => number
  idleSeconds: number
  limits: Required<DataLimits>
}

/** Session data by session id. The caller must check that the client may use the id. */
export function sessionData({ runner, keys, now, idleSeconds, limits }: SessionDataContext) {
  return {
    /** The data of a session; undefined if it has ended or is idle. One round trip. */
    async read(id: string): Promise<SessionData | undefined> {
      const session = await runner.run(withData(checkToken(keys, id), keys, id))
      if (session === undefined || session.lastSeenAt < now() - 1000 * idleSeconds) return undefined
      return session.data
    },

    /**
     * Writes data according to `mode` (see `DataWrite`), in one round trip. Undefined fields are removed.
     *
     * @param seenAt The new time of last use of the session, in milliseconds since 1970.
     * @returns The new version; undefined if there is no session and none was created.
     * @throws StoreError `ONETRIP_INVALID_INPUT` as `encodeFields`, or if the session would have too many
     *   fields; `ONETRIP_CONFLICT` if the version of the data is not `ifVersion`.
     */
    async write(
      id: string,
      mode: DataWrite['mode'],
      data: Readonly<Record<string, unknown>>,
      ifVersion?: number,
      seenAt = now(),
    ): Promise<{ version: number } | undefined> {
      const fields = encodeFields(data, limits)
      if (ifVersion !== undefined)
        checkNumber('ifVersion', ifVersion, {
          min: 0,
          max: Number.MAX_SAFE_INTEGER,
          integer: true,
        })
      const maxFields = limits.fields
      const times = { now: seenAt, idleBefore: now() - 1000 * idleSeconds }
      const write = { id, mode, fields, ifVersion, maxFields }
      const written = await runner.run(writeData(keys, write, times))
      if (written === 'gone') return undefined
      if (written === 'full') {
        const message = `the session's data would have more than ${maxFields} fields`
        throw new StoreError('ONETRIP_INVALID_INPUT', message)
      }
      if (written === 'conflict') {
        const message = `the session's data is not at version ${ifVersion}; read it again`
        throw new StoreError('ONETRIP_CONFLICT', message)
      }
      return written
    },

    /**
     * Ends a session. `create` does not bring it back for five minutes, because a request that loaded the
     * session before may still write it. Two round trips. Returns whether it existed.
     */
    async end(id: string): Promise<boolean> {
      const user = await runner.run(endWithTombstone(keys, id, TOMBSTONE_SECONDS))
      if (user) await runner.run(forgetSessions(keys, user, [id]))
      return user !== undefined
    },
  }
}

/** The functions of the store for guests and session data, by token. */
export function dataFunctions({ tokens, ...context }: SessionDataContext & { tokens: Tokens }) {
  const byId = sessionData(context)
  const { runner, keys, now } = context

  return {
    async loginGuest() {
      const token = tokens.issue()
      const id = tokens.verify(token)
      await runner.run(updateToken(keys, { id, user: GUEST }, now()))
      return { token, expiresAt: tokens.expiresAt(id) }
    },

    async data(token: string): Promise<SessionData> {
      return requireSession(await byId.read(tokens.verify(token)))
    },

    async patch(
      token: string,
      fields: Readonly<Record<string, unknown>>,
      options: PatchOptions = {},
    ): Promise<{ version: number }> {
      const id = tokens.verify(token)
      checkObject('options', options)
      return requireSession(await byId.write(id, 'patch', fields, options.ifVersion))
    },
  }
}
