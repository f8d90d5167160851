import type { SessionContext, StoreContext } from '../context.ts'
import { requireSession, StoreError } from '../errors.ts'
import { checkNumber, checkObject } from '../input.ts'
import { checkToken, type Session } from '../sessions/session-operations.ts'
import {
  type DataPatch,
  type DataWrite,
  type NewVersion,
  type PatchOptions,
  type SessionData,
  type UntypedData,
  withData,
  writeData,
} from './data.ts'
import {
  type DataRules,
  encodeFields,
  encodeSwap,
  type SwappedField,
  tokenRules,
} from './data-fields.ts'

export interface WriteOptions extends PatchOptions, Pick<DataWrite, 'blockedMs' | 'user'> {
  /** The new time of last use of the session, in milliseconds since 1970. Default now. */
  seenAt?: number
  swap?: SwappedField | undefined
  /** Adds the session to the list of `user`. Called only if it has another user. */
  enlist?: () => Promise<unknown>
}

/** Session data by session id. The caller must check that the client may use the id. */
export function sessionData({ runner, keys, now, idleSeconds }: SessionContext, rules: DataRules) {
  return {
    /** A session with its data; undefined if it has ended or is idle. One round trip. */
    async read(id: string): Promise<(Session & { data: UntypedData }) | undefined> {
      const session = await runner.run(withData(checkToken(keys, id), keys, id))
      return session && session.lastSeenAt >= now() - 1000 * idleSeconds ? session : undefined
    },

    /**
     * Writes data according to `mode` (see `DataWrite`), in one round trip; three if the session gets a user.
     * Undefined fields are removed.
     *
     * @returns The new version; undefined if there is no session and none was created.
     * @throws StoreError `ONETRIP_INVALID_INPUT` as `encodeFields`, or if the session would have too many
     *   fields; `ONETRIP_CONFLICT` if the version of the data is not `ifVersion`.
     */
    async write(
      id: string,
      mode: DataWrite['mode'],
      data: object,
      { ifVersion, seenAt = now(), swap: swapped, blockedMs, user, enlist }: WriteOptions = {},
    ): Promise<NewVersion | undefined> {
      const fields = encodeFields(data, rules)
      const swap = swapped && encodeSwap(swapped, rules)
      if (ifVersion !== undefined)
        checkNumber('ifVersion', ifVersion, {
          min: 0,
          max: Number.MAX_SAFE_INTEGER,
          integer: true,
        })
      const maxFields = rules.fields
      const times = { now: seenAt, idleBefore: now() - 1000 * idleSeconds }
      const write = { id, mode, fields, swap, ifVersion, maxFields, blockedMs, user }
      let written = await runner.run(writeData(keys, write, times))
      if (written === 'unlisted') {
        await enlist?.()
        written = await runner.run(writeData(keys, { ...write, isListed: true }, times))
      }
      if (written === 'gone') return undefined
      if (written === 'full') {
        const message = `the session's data would have more than ${maxFields} fields`
        throw new StoreError('ONETRIP_INVALID_INPUT', message)
      }
      if (written === 'conflict') {
        const message = `the session's data is not at version ${ifVersion}; read it again`
        throw new StoreError('ONETRIP_CONFLICT', message)
      }
      return written as NewVersion
    },
  }
}

/** The functions of the store for session data, by token. */
export function dataFunctions<Fields extends object>(context: StoreContext) {
  const { tokens } = context
  const byId = sessionData(context, tokenRules)

  return {
    /**
     * Returns the session's data. Writes nothing. One round trip.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; `ONETRIP_UNREADABLE_DATA`, as all functions that read data,
     *   if a field in Redis is not JSON.
     */
    async data(token: string): Promise<SessionData<Fields>> {
      return requireSession(await byId.read(tokens.verify(token))).data as SessionData<Fields>
    },

    /**
     * Changes fields of the session's data and refreshes the session. Each value is stored as JSON; undefined
     * removes the field; all other fields stay. A patch is atomic. Concurrent patches of different fields all
     * take effect; of the same field the last one wins, unless `ifVersion` is given. One round trip.
     *
     * @returns The new version.
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; `ONETRIP_CONFLICT` if the version of the data is not
     *   `ifVersion`; `ONETRIP_INVALID_INPUT` for a value that is not JSON or exceeds a limit.
     */
    async patch(
      token: string,
      fields: DataPatch<Fields>,
      options: PatchOptions = {},
    ): Promise<{ version: number }> {
      const id = tokens.verify(token)
      checkObject('options', options)
      return requireSession(await byId.write(id, 'patch', fields, { ifVersion: options.ifVersion }))
    },
  }
}
