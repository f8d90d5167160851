import { StoreError } from '../errors.ts'
import type { Entry } from './user-sessions.ts'

/** No session has a longer cursor. */
export const MAX_CURSOR_LENGTH = 200

/**
 * The position of an entry in the list of a user's sessions. It stays valid if the entry is removed, so
 * logins and logouts between two pages neither skip nor repeat a session.
 */
export const cursorOf = ({ score, id }: Entry): string =>
  Buffer.from(`${score} ${id}`).toString('base64url')

/** @throws StoreError `ONETRIP_INVALID_INPUT` for anything that `cursorOf` does not return. */
export function positionOf(cursor: unknown): Entry {
  if (typeof cursor === 'string' && cursor.length <= MAX_CURSOR_LENGTH) {
    const text = Buffer.from(cursor, 'base64url').toString()
    const [, score, id] = /^(\d+(?:\.\d+)?) ([\w-]+)$/.exec(text) ?? []
    if (score !== undefined && id !== undefined) {
      const position = { score: Number(score), id }
      if (cursorOf(position) === cursor) return position
    }
  }
  throw new StoreError('ONETRIP_INVALID_INPUT', 'cursor must be the nextCursor of a page')
}
