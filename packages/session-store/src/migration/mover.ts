import { batches } from '../retention/retention-tasks.ts'
import { usersOf } from '../updates.ts'
import {
  allMoving,
  forgetMoving,
  installSessions,
  listSessions,
  movingOf,
  type Traveller,
  takeSessions,
} from './move-sessions.ts'
import type { MigrationSides } from './state.ts'

/** What one script moves at the most. */
export const MAX_SESSIONS = 100

export interface Mover {
  /**
   * Moves these sessions, whichever step of their way they are at. Returns how many arrived. Five round trips.
   */
  move(ids: readonly string[]): Promise<number>
  /** The same for sessions whose users are known. Four round trips. */
  moveUsers(sessions: readonly (readonly [id: string, user: string])[]): Promise<number>
  /** Completes the move of a session that has left the source, if it has. One to four round trips. */
  complete(id: string): Promise<void>
  /** The same for all such sessions. Returns how many arrived. */
  completeAll(): Promise<number>
}

/**
 * Moves sessions from one store to the other. Each step can be repeated, by any process, at any time:
 *
 * 1. Source: the session ends there, and its records are in `moving` (one script).
 * 2. Target: the session is installed unless it was before (one script in one slot).
 * 3. Target: the user's list names it.
 * 4. Source: `moving` forgets it.
 *
 * A failure after step 1 leaves the records in `moving`, from where the next attempt takes them.
 */
export function createMover({ from, to }: MigrationSides): Mover {
  async function arrive(sessions: readonly Traveller[]): Promise<number> {
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
      const users = await from.store.run(usersOf(from.keys, ids))
      // A guest's name is empty, and so is that of a session that may be on its way.
      return await moveUsers(ids.map((id, index) => [id, users[index] ?? '']))
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
