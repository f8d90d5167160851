import { statesOf } from '../core/sessions/session-operations.ts'
import { batches } from '../core/sessions/walk.ts'
import {
  allMoving,
  forgetMoving,
  installSessions,
  listSessions,
  type MovingSession,
  movingOf,
  takeSessions,
} from './move-sessions.ts'
import type { MigrationSides } from './state.ts'

/** Maximum number of sessions that one script moves. */
export const MAX_SESSIONS = 100

interface Mover {
  /** Moves these sessions, or completes their moves. Returns how many arrived. Five round trips. */
  move(ids: readonly string[]): Promise<number>
  /** The same for sessions whose users are known. Four round trips. */
  moveUsers(sessions: readonly (readonly [id: string, user: string])[]): Promise<number>
  /** Completes the move of a session if it has left the source. One to four round trips. */
  complete(id: string): Promise<void>
  /** Completes all interrupted moves. Returns how many sessions arrived. */
  completeAll(): Promise<number>
}

/**
 * Moves sessions from one store to the other. Any process can repeat each step at any time:
 *
 * 1. Source: end the session and save its records in `moving` (one script).
 * 2. Target: create the session unless it has arrived before (one script in one slot).
 * 3. Target: add it to the user's list.
 * 4. Source: delete it from `moving`.
 *
 * A failure after step 1 leaves the records in `moving`, where the next attempt finds them.
 */
export function createMover({ from, to }: MigrationSides): Mover {
  async function arrive(sessions: readonly MovingSession[]): Promise<number> {
    if (sessions.length === 0) return 0
    const arrived = await to.store.run(installSessions(to.keys, sessions))
    const lists = listSessions(to.keys, sessions)
    if (lists.commands.length > 0) await to.store.run(lists)
    await from.store.run(forgetMoving(from.keys, sessions))
    return arrived
  }

  const moveUsers: Mover['moveUsers'] = async (sessions) =>
    await arrive(await from.store.run(takeSessions(from.keys, sessions)))

  return {
    moveUsers,
    async move(ids) {
      const states = await from.store.run(statesOf(from.keys, ids))
      // The user is empty for a guest session, and for a session that may be in `moving`.
      return await moveUsers(ids.map((id, index) => [id, states[index]?.user ?? '']))
    },
    async complete(id) {
      await arrive(await from.store.run(movingOf(from.keys, [id])))
    },
    async completeAll() {
      const all = await from.store.run(allMoving(from.keys))
      let arrived = 0
      for (const some of batches(all, MAX_SESSIONS)) arrived += await arrive(some)
      return arrived
    },
  }
}
