import { StoreError } from './errors.ts'
import type { Entry } from './user-sessions.ts'

/** Longer than that of any session. */
export const MAX_CURSOR_LENGTH = 200

/**
 * Names the place of an entry in the list of a user's sessions, whether or not the entry is still there:
 * a page that begins after it skips and repeats nothing, whatever logs in or out meanwhile.
 */
export const cursorOf = ({ loggedInAt, id }: Entry): string =>
  Buffer.from(`${loggedInAt} ${id}`).toString('base64url')

/** @throws StoreError `ONETRIP_INVALID_INPUT` for anything that `cursorOf` does not return. */
export function positionOf(cursor: unknown): Entry {
  if (typeof cursor === 'string' && cursor.length <= MAX_CURSOR_LENGTH) {
    const text = Buffer.from(cursor, 'base64url').toString()
    const [, loggedInAt, id] = /^(\d+(?:\.\d+)?) ([\w-]+)$/.exec(text) ?? []
    if (loggedInAt !== undefined && id !== undefined) {
      const position = { loggedInAt: Number(loggedInAt), id }
      if (cursorOf(position) === cursor) return position
    }
  }
  throw new StoreError('ONETRIP_INVALID_INPUT', 'cursor must be the nextCursor of a page')
}
