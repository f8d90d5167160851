import { StoreError } from '../errors.ts'
import { EXTERNAL } from '../keys.ts'
import type { Entry } from './list-operations.ts'

/** Longer than any valid cursor, in characters: ids of external sessions are long. */
const MAX_CURSOR_LENGTH = 4_400

/** Login time and session id. */
const POSITION = new RegExp(`^(\\d+(?:\\.\\d+)?) ([\\w-]{1,128}|${EXTERNAL}.{1,1024})$`, 's')

/**
 * Encodes the position of an entry in a user's session list. The position stays valid if the entry is removed,
 * so logins and logouts between two pages neither skip nor repeat a session.
 */
export const cursorOf = ({ score, id }: Entry): string =>
  Buffer.from(`${score} ${id}`).toString('base64url')

/** @throws StoreError `ONETRIP_INVALID_INPUT` unless `cursorOf` created the cursor. */
export function positionOf(cursor: unknown): Entry {
  if (typeof cursor === 'string' && cursor.length <= MAX_CURSOR_LENGTH) {
    const text = Buffer.from(cursor, 'base64url').toString()
    const [, score, id] = POSITION.exec(text) ?? []
    if (score !== undefined && id !== undefined) {
      const position = { score: Number(score), id }
      if (cursorOf(position) === cursor) return position
    }
  }
  throw new StoreError('ONETRIP_INVALID_INPUT', 'cursor must be the nextCursor of a page')
}
