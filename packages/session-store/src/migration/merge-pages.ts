import { scoreOf } from '../core/operation.ts'
import { cursorOf } from '../core/sessions/cursor.ts'
import { type Entry, inListOrder } from '../core/sessions/list-operations.ts'
import type { ListedSession } from '../core/sessions/user-session-lists.ts'

/** A page of one list. `last` is the position of the next page, if there is one. */
interface Page {
  readonly sessions: readonly ListedSession[]
  readonly last: Entry | undefined
}

const entryOf = ({ id, loggedInAt }: ListedSession): Entry => ({ id, score: scoreOf(loggedInAt) })

/** Merges the pages of several lists into one page. A session that is in several lists occurs once. */
export function mergePages(
  pages: readonly Page[],
  limit: number,
): { sessions: ListedSession[]; nextCursor: string | undefined } {
  const byId = new Map(pages.flatMap(({ sessions }) => sessions).map((one) => [one.id, one]))
  const sessions = [...byId.values()].sort((a, b) => inListOrder(entryOf(a), entryOf(b)))
  const ends = pages.flatMap(({ last }) => last ?? [])
  const cut = sessions[limit - 1]
  if (cut && sessions.length > limit) ends.push(entryOf(cut))
  // The merged page ends at the first end: later sessions may come after unread ones of that list.
  const [end] = ends.sort(inListOrder)
  if (end === undefined) return { sessions, nextCursor: undefined }
  return {
    sessions: sessions.filter(
      (session) => inListOrder(entryOf(session), end) <= 0 || session.id === end.id,
    ),
    nextCursor: cursorOf(end),
  }
}
