import { checkId, isIdle, multiStep, type StoreContext } from '../context.ts'
import { idempotent } from '../errors.ts'
import { checkName, checkString } from '../input.ts'
import type { PageOptions } from '../store-options.ts'
import type { UserSessionPage } from '../store-types.ts'
import { cursorOf } from './cursor.ts'
import { rangeOf, totalEnded, userSessionLists } from './user-session-lists.ts'
import { statesOf } from './user-sessions.ts'

/** The functions of the store that list and end the sessions of a user. */
export function ownSessionFunctions(context: StoreContext) {
  const { runner, keys, tokens } = context
  const lists = userSessionLists(context)
  const steps = multiStep(context)

  /** Ends the caller's own session last, because the caller needs it to repeat a call that has failed. */
  async function* endEverywhere(own: string): AsyncGenerator<number> {
    const { user } = await checkId(context, own)
    if (user !== null) yield* lists.endAll(user, own)
    if (await lists.end(own)) yield 1
  }

  return {
    userSessions: steps(
      idempotent(async (token: string, page: PageOptions = {}): Promise<UserSessionPage> => {
        const own = tokens.verify(token)
        const range = rangeOf(page)
        const { user } = await checkId(context, own)
        if (user === null) return { sessions: [] }
        const { sessions, last } = await lists.page(user, range)
        return {
          sessions: sessions
            .filter((session) => !isIdle(context, session))
            .map((session) => ({ ...session, current: session.id === own })),
          ...(last && { nextCursor: cursorOf(last) }),
        }
      }),
    ),

    revokeSession: steps(
      idempotent(async (token: string, id: string): Promise<boolean> => {
        const own = tokens.verify(token)
        checkString('id', id)
        const { user } = await checkId(context, own)
        if (user === null) return false
        const [state] = await runner.run(statesOf(keys, [id]))
        return state?.user === user && (await lists.end(id))
      }),
    ),

    logoutEverywhere: steps((token: string) => totalEnded(endEverywhere(tokens.verify(token)))),

    endUserSessions: steps(async (user: string): Promise<number> => {
      checkName('user', user)
      return await totalEnded(lists.endAll(user))
    }),
  }
}
