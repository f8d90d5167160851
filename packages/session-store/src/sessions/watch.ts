import { checkId, type StoreContext } from '../context.ts'
import { wrongType } from '../input.ts'
import { callBack, type SessionEndListener } from './session-ends.ts'

/** The longest time of `setTimeout`. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** Returns the function `watchSession` of a store. */
function sessionWatch(context: StoreContext) {
  const { ends, tokens, now } = context
  /** By session id. */
  const watches = new Map<string, Set<() => void>>()
  let listening: Promise<() => void> | undefined

  function add(id: string, end: () => void): void {
    watches.set(id, (watches.get(id) ?? new Set()).add(end))
    listening ??= ends.listen({ ended: endAll, held: () => watches.keys() })
  }

  function remove(id: string, end: () => void): void {
    const own = watches.get(id)
    own?.delete(end)
    if (own?.size === 0) watches.delete(id)
    if (watches.size > 0) return
    listening?.then((stop) => stop()).catch(() => undefined)
    listening = undefined
  }

  const endAll = (id: string) => {
    for (const end of watches.get(id) ?? []) end()
  }

  return async (token: string, onEnd: () => unknown): Promise<() => void> => {
    const expiresAt = tokens.expiresAt(token)
    if (typeof onEnd !== 'function') throw wrongType('onEnd must be a function')
    const id = token.slice(0, token.indexOf('.'))
    let timer: NodeJS.Timeout | undefined
    let stopped = false
    const stop = () => {
      stopped = true
      clearTimeout(timer)
      remove(id, end)
    }
    const end = () => {
      stop()
      callBack(onEnd)
    }
    const endAtExpiry = () => {
      const left = expiresAt - now()
      if (left <= 0) end()
      else timer = setTimeout(endAtExpiry, Math.min(left, MAX_DELAY_MS)).unref()
    }
    add(id, end) // before the check, so that an end during the check is reported
    try {
      await listening
      await checkId(context, tokens.verify(token))
    } catch (error) {
      stop()
      throw error
    }
    if (!stopped) endAtExpiry()
    return stop
  }
}

/** The functions of the store that tell when sessions end. */
export function sessionEndFunctions(context: StoreContext) {
  const watch = sessionWatch(context)

  return {
    /**
     * Calls `ended` with the id of each session that ends, in any process: by logout, revocation, the limit
     * of a user, a login that takes over a guest session, or the janitor. Not when a token expires (see
     * `tokenExpiresAt`).
     *
     * The first listener opens a connection that subscribes. A lost one is replaced; then the sessions that the
     * process holds are checked, 100 in one round trip.
     *
     * @returns A function that removes the listener. Resolves when Redis has confirmed the subscription.
     * @throws TypeError if the sender cannot subscribe; StoreError `ONETRIP_NOT_SENT`, or `ONETRIP_REFUSED` if the user
     *   of Redis lacks a permission.
     */
    onSessionEnded: (listener: SessionEndListener): Promise<() => void> =>
      context.ends.listen(listener),

    /**
     * Checks the session, and calls `onEnd` once when it ends (see `onSessionEnded`) or the token expires: for an open
     * WebSocket, which sends no further requests. One round trip. The WebSocket does not count as use of the session:
     * call `touch`.
     *
     * @returns A function that stops watching.
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`; the errors of `onSessionEnded`.
     */
    watchSession: (token: string, onEnd: () => unknown): Promise<() => void> => watch(token, onEnd),
  }
}
