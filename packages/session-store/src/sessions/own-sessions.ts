import { checkId, requireActive, type StoreContext } from '../context.ts'
import { idempotent } from '../errors.ts'
import { checkName, checkString } from '../input.ts'
import { isIdle, statesOf } from '../operations/sessions.ts'
import type { ListedSession } from './user-sessions.ts'
import { totalEnded, userSessionLists } from './user-sessions.ts'

export interface UserSession extends ListedSession {
  /** Whether this is the session of the token passed to `userSessions`. */
  current: boolean
}

/** The functions of the store that list and end the sessions of a user. */
export function ownSessionFunctions(context: StoreContext) {
  const { runner, keys, tokens } = context
  const lists = userSessionLists(context)

  async function* endOthers(own: string): AsyncGenerator<number> {
    const { user } = await checkId(context, own)
    if (user !== null) yield* lists.endAll(user, own)
  }

  /** Ends the caller's own session last, because the caller needs it to repeat a call that has failed. */
  async function* endEverywhere(own: string): AsyncGenerator<number> {
    yield* endOthers(own)
    if (await lists.end(own)) yield 1
  }

  return {
    /**
     * Returns the sessions that the token's user started with `login`, latest login first; none for a guest session.
     * Three round trips, two more for each further 100 sessions, and one more if entries without a session were found
     * and removed.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session of the token has ended.
     */
    userSessions: idempotent(async (token: string): Promise<{ sessions: UserSession[] }> => {
      const own = tokens.verify(token)
      const { user } = await checkId(context, own)
      const sessions = user === null ? [] : await lists.sessionsOf(user)
      return {
        sessions: sessions
          .filter((session) => !isIdle(context, session))
          .map((session) => ({ ...session, current: session.id === own })),
      }
    }),

    /**
     * Ends the session with this id (`userSessions`). Returns false if there is none, or if it belongs to
     * another user. A retry is safe, as with `logout`.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session of the token has ended.
     */
    revokeSession: idempotent(async (token: string, id: string): Promise<boolean> => {
      const own = tokens.verify(token)
      checkString('id', id)
      const [session, other] = await runner.run(statesOf(keys, [own, id]))
      const { user } = requireActive(context, session)
      return user !== null && other?.user === user && (await lists.end(id))
    }),

    /**
     * Ends all sessions of the token's user, 100 at a time, and this one last: after a failure, call it again with the
     * same token. Returns their number.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session of the token has ended. If some sessions may have
     *   ended, the error has `mayHaveWritten` and `retrySafe`.
     */
    logoutEverywhere: (token: string) => totalEnded(endEverywhere(tokens.verify(token))),

    /** As `logoutEverywhere`, but keeps the session of the token. */
    endOtherSessions: (token: string) => totalEnded(endOthers(tokens.verify(token))),

    /**
     * Ends all sessions that a user started with `login`. For administrators. Returns their number. After a failure,
     * call it again.
     *
     * @throws StoreError If some sessions may have ended, the error has `mayHaveWritten` and `retrySafe`.
     */
    endUserSessions: async (user: string): Promise<number> => {
      checkName('user', user)
      return await totalEnded(lists.endAll(user))
    },
  }
}
