import type { Sender } from '../sending/sender.ts'
import { currentCache } from './current-cache.ts'
import type { ReadContext, SessionEnds } from './session-ends.ts'
import { checkToken, isIdle, type Session } from './session-operations.ts'

/** Reads sessions for checks, from a local cache if there is one. */
export interface Checks {
  /** The session; undefined if it has ended. It may be idle. Callers share it; `touch` sets its `lastSeenAt`. */
  get(id: string): Promise<Session | undefined>
  /** Call it after this process has ended a session: the message of Redis may arrive later. */
  forget(id: string): void
  /** Turns the cache on. @throws StoreError as `onSessionEnded`. */
  start(): Promise<void>
}

/** @param maxEntries 0: no cache. */
export function createChecks(
  context: ReadContext & { ends: SessionEnds },
  maxEntries: number,
): Checks {
  const { runner, keys, ends } = context
  const read = (id: string) => runner.run(checkToken(keys, id))
  const nothing = () => undefined
  if (maxEntries === 0) {
    return { get: read, forget: nothing, start: async () => undefined }
  }

  const cache = currentCache({ maxEntries, read, isCurrent })
  let started: Promise<unknown> | undefined

  const start = () => {
    started ??= ends.listen({ ended: cache.delete, lost: cache.clear }).catch((error) => {
      started = undefined
      throw error
    })
    return started
  }

  function isCurrent(): boolean {
    start().catch(nothing)
    return ends.isCurrent()
  }

  return {
    async get(id) {
      const session = await cache.get(id)
      if (session !== undefined && !isIdle(context, session)) return session
      // Another process may have refreshed it, or a migration may bring it.
      cache.delete(id)
      return session && (await read(id))
    },
    forget: cache.delete,
    async start() {
      await start()
    },
  }
}

/** @throws TypeError if checks cannot be cached with this sender. */
export function requireReports(sender: Sender): void {
  // A node that is cut off from the others still answers, but does not get their messages.
  if (sender.subscribe && !sender.topology) return
  throw new TypeError(`cachedChecks does not work with the sender ${sender.name}`)
}
