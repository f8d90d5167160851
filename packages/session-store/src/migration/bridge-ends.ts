import { checkFunctions } from '../core/input.ts'
import type { Keys } from '../core/keys.ts'
import { callBack, type SessionEndListener } from '../core/sessions/session-ends.ts'
import { statesOf } from '../core/sessions/session-operations.ts'
import type { SessionStore } from '../core/store.ts'

interface Side {
  readonly store: Pick<SessionStore, 'run' | 'onSessionEnded'>
  readonly keys: Keys
}

/**
 * `onSessionEnded` of a bridge: the ends that both sides report, without sessions that only move.
 *
 * @param complete Completes the move of a session, if it has begun.
 */
export function bridgedEnds(
  { from, to }: Record<'from' | 'to', Side>,
  complete: (id: string) => Promise<void>,
): SessionStore['onSessionEnded'] {
  /** A session that is gone from one side may be on the other, or on its way there. If in doubt, it is gone. */
  async function isGone(id: string): Promise<boolean> {
    try {
      await complete(id)
      const states = [from, to].map(({ store, keys }) => store.run(statesOf(keys, [id])))
      return (await Promise.all(states)).every(([state]) => state === undefined)
    } catch {
      return true
    }
  }

  return async (listener: SessionEndListener): Promise<() => void> => {
    checkFunctions('the listener', listener, ['ended'])
    /** One after another: after a loss, there may be thousands. */
    let checked = Promise.resolve()
    const ended = (id: string) => {
      checked = checked
        .then(() => isGone(id))
        .then((gone) => {
          if (gone) callBack(() => listener.ended(id))
        })
    }
    const onBoth: SessionEndListener = {
      ended,
      held: () => listener.held?.() ?? [],
      lost: () => listener.lost?.(),
      regained: () => listener.regained?.(),
    }
    const stop = await from.store.onSessionEnded(onBoth)
    const stopOther = await to.store.onSessionEnded(onBoth).catch((error) => {
      stop()
      throw error
    })
    return () => {
      stop()
      stopOther()
    }
  }
}
