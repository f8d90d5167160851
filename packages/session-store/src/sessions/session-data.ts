import { checkWith, type StoreContext } from '../context.ts'
import { requireSession, StoreError } from '../errors.ts'
import { checkNumber, checkObject } from '../input.ts'
import {
  type DataPatch,
  type PatchOptions,
  type SessionData,
  withData,
  writeData,
} from '../operations/data.ts'
import { encodeFields, MAX_FIELDS } from '../operations/encode-fields.ts'
import { checkToken } from '../operations/sessions.ts'

/** The functions of the store for session data, by token. */
export function dataFunctions<Fields extends object>(context: StoreContext) {
  const { runner, keys, now, idleSeconds, tokens } = context

  return {
    /**
     * Returns the session's data. Writes nothing. One round trip.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; `ONETRIP_UNREADABLE_DATA`, as all functions that read data,
     *   if a field in Redis is not JSON.
     */
    async data(token: string): Promise<SessionData<Fields>> {
      const id = tokens.verify(token)
      const { data } = await checkWith(context, withData(checkToken(keys, id), keys, id))
      return data as SessionData<Fields>
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
      const { ifVersion } = options
      const encoded = encodeFields(fields)
      if (ifVersion !== undefined) {
        const range = { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true }
        checkNumber('ifVersion', ifVersion, range)
      }
      const write = {
        id,
        mode: 'patch',
        fields: encoded,
        ifVersion,
        maxFields: MAX_FIELDS,
      } as const
      const times = { now: now(), idleBefore: now() - 1000 * idleSeconds }
      const written = await runner.run(writeData(keys, write, times))
      if (written === 'full') {
        const message = `the session's data would have more than ${MAX_FIELDS} fields`
        throw new StoreError('ONETRIP_INVALID_INPUT', message)
      }
      if (written === 'conflict') {
        const message = `the session's data is not at version ${ifVersion}; read it again`
        throw new StoreError('ONETRIP_CONFLICT', message)
      }
      return requireSession(written === 'gone' ? undefined : written)
    },
  }
}
