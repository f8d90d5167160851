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

/** A cut connection can keep Redis from publishing the end of a session that it has ended. */
const MAX_AGE_MS = 60_000
const RETRY_MS = 1_000

/** @param maxEntries 0: no cache. */
export function createChecks(
  context: ReadContext & { ends: SessionEnds },
  maxEntries: number,
): Checks {
  const { runner, keys, ends } = context
  const check = (id: string) => runner.run(checkToken(keys, id))
  const nothing = () => undefined
  if (maxEntries === 0) {
    return { get: check, forget: nothing, start: async () => undefined }
  }

  const read = async (id: string) => ({ session: await check(id), readAt: performance.now() })
  const cache = currentCache({ maxEntries, read, isCurrent })
  let started: Promise<unknown> | undefined

  const start = () => {
    started ??= ends.listen({ ended: cache.delete, lost: cache.clear }).catch((error) => {
      setTimeout(() => {
        started = undefined
      }, RETRY_MS).unref()
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
      const { session, readAt } = await cache.get(id)
      const isOld = performance.now() - readAt > MAX_AGE_MS
      if (session !== undefined && !isOld && !isIdle(context, session)) return session
      // Another process may have refreshed it.
      cache.delete(id)
      return session && (await cache.get(id)).session
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
  // Without a pool there is no connection that says which server of Sentinel is the primary.
  if (sender.subscribe && !sender.topology && sender.name !== 'naive') return
  throw new TypeError(`cachedChecks does not work with the sender ${sender.name}`)
}
