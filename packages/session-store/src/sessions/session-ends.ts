import { setTimeout as delay } from 'node:timers/promises'
import { publishWarning } from '../diagnostics.ts'
import { StoreError } from '../errors.ts'
import { checkFunctions } from '../input.ts'
import type { Keys } from '../keys.ts'
import { isIdle, publishEnd, statesOf } from '../operations/sessions.ts'
import { isRefusal, notSent, operationError } from '../redis/outcomes.ts'
import type { Runner } from '../redis/runner.ts'
import type { Sender } from '../redis/sender.ts'
import { batches } from '../retention/walk.ts'

/** Learns of the end of sessions. */
export interface SessionEndListener {
  /** Called with the id of each session that ends, perhaps twice. */
  ended(id: string): void
  /** The ids of the sessions that this process holds, such as those of its open WebSockets. See `regained`. */
  held?(): Iterable<string>
  /** Called when the subscription is lost: ends may be missed. */
  lost?(): void
  /** Called when it is back. Then `ended` is called for each session of `held` that is gone. */
  regained?(): void
}

/** @throws StoreError `ONETRIP_REFUSED` if the user of Redis may not publish the end of sessions. */
export async function requirePublish({ runner, keys }: ReadContext): Promise<void> {
  const nothing = { commands: [publishEnd(keys, '')], readOnly: true, read: () => undefined }
  await runner.run(nothing).catch((cause: StoreError) => {
    if (cause.code !== 'ONETRIP_REFUSED') return // a node of a cluster may be down
    const [channels] = keys.login('').split('{') // without a number of a partition
    const message = `the user of Redis lacks permission to publish session ends: give it +publish and &${channels}*`
    throw new StoreError(cause.code, message, { mayHaveWritten: false, cause })
  })
}

type SubscribingSender = Required<Pick<Sender, 'subscribe'>>

/** How often Redis must show that the subscription is alive. */
const CHECK_EVERY_MS = 1_000
const RETRY_MS = 250
const CHECKED_TOGETHER = 100

export interface SessionEnds {
  /** As `onSessionEnded`. */
  listen(listener: SessionEndListener): Promise<() => void>
}

/** What the functions that read sessions need. */
export interface ReadContext {
  readonly runner: Runner
  readonly keys: Keys
  readonly deadlineMs: number
  /** Milliseconds since 1970. */
  now(): number
  readonly idleSeconds: number
}

export function createSessionEnds(context: ReadContext): SessionEnds {
  const { runner, keys, deadlineMs } = context
  const { sender } = runner
  const channels = keys.parts().map(({ login }) => login)
  const listeners = new Set<SessionEndListener>()
  let isSubscribed = false
  /** Settles with the first attempt to subscribe. Undefined without listeners. */
  let first: Promise<void> | undefined
  let stop = new AbortController()

  /** Replaces a lost subscription, until `signal`. */
  async function stayInformed(attempted: PromiseWithResolvers<void>, signal: AbortSignal) {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await subscribe(signal, async () => {
          attempted.resolve()
          if (attempt === 0) return
          tellAll((listener) => listener.regained?.())
          for (const listener of listeners) await checkHeld(listener)
        })
      } catch (error) {
        attempted.reject(withoutSubscription(error as Error))
      }
      if (signal.aborted) break
      isSubscribed = false
      tellAll((listener) => listener.lost?.())
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
    attempted.reject(withoutSubscription(new Error('the store is closed')))
  }

  /** Rejects when the subscription is lost, when `onSubscribed` rejects, or at `signal`. */
  async function subscribe(signal: AbortSignal, onSubscribed: () => Promise<void>): Promise<void> {
    const { ready, lost, ping, close } = (sender as SubscribingSender).subscribe(channels, (id) => {
      if (id !== '') tellAll((listener) => listener.ended(id))
    })
    const end = new AbortController()
    void lost.then(() => end.abort())
    const over = AbortSignal.any([signal, end.signal])
    const answered = async (work: Promise<unknown>) => {
      const late = setTimeout(close, deadlineMs)
      const { promise: isOver, reject } = Promise.withResolvers<never>()
      const fail = () => reject(notSent('the subscription to the end of sessions was lost'))
      over.addEventListener('abort', fail)
      try {
        if (over.aborted) fail()
        await Promise.race([work, isOver])
      } finally {
        clearTimeout(late)
        over.removeEventListener('abort', fail)
      }
      if (!signal.aborted) isSubscribed = true
    }
    try {
      await answered(ready)
      await onSubscribed()
      for (;;) {
        await delay(CHECK_EVERY_MS, undefined, { signal: over, ref: false })
        await answered(ping())
      }
    } finally {
      close()
    }
  }

  async function checkHeld(listener: SessionEndListener): Promise<void> {
    for (const ids of batches(heldBy(listener), CHECKED_TOGETHER)) {
      const states = await runner.run(statesOf(keys, ids))
      for (const [index, id] of ids.entries()) {
        const state = states[index]
        if (!state || isIdle(context, state)) tell(listener, ({ ended }) => ended(id))
      }
    }
  }

  const tellAll = (what: Told) => {
    for (const listener of listeners) tell(listener, what)
  }

  return {
    async listen(listener) {
      const { held, lost, regained } = listener ?? {}
      const given = Object.entries({ held, lost, regained }).filter(
        ([, call]) => call !== undefined,
      )
      checkFunctions('the listener', listener, ['ended', ...given.map(([name]) => name)])
      if (!sender.subscribe) throw new TypeError(`the sender ${sender.name} cannot subscribe`)
      listeners.add(listener)
      if (!first) {
        stop = new AbortController()
        const attempted = Promise.withResolvers<void>()
        first = attempted.promise
        void stayInformed(attempted, AbortSignal.any([stop.signal, runner.closing]))
      }
      const remove = () => {
        if (!listeners.delete(listener) || listeners.size > 0) return
        first = undefined
        isSubscribed = false
        stop.abort()
      }
      try {
        await first
      } catch (error) {
        remove()
        throw error
      }
      if (!isSubscribed) tell(listener, () => listener.lost?.())
      return remove
    },
  }
}

type Told = (listener: SessionEndListener) => unknown

const tell = (listener: SessionEndListener, what: Told): void => callBack(() => what(listener))

/** Calls a function of the application. Its error becomes a warning: it must not keep others from being called. */
export const callBack = (call: () => unknown): void =>
  void Promise.resolve()
    .then(call)
    .catch((error: unknown) => {
      const message = 'a function that was called at the end of a session failed'
      publishWarning({ code: 'ONETRIP_CALLBACK_FAILED', message, error })
    })

function heldBy(listener: SessionEndListener): string[] {
  try {
    return [...(listener.held?.() ?? [])]
  } catch (error) {
    callBack(() => {
      throw error
    })
    return []
  }
}

function withoutSubscription(cause: Error): StoreError {
  const message = 'Redis did not accept the subscription to the end of sessions'
  if (!isRefusal(cause)) return operationError(notSent(message, cause), true)
  const refused = new StoreError('ONETRIP_REFUSED', message, { mayHaveWritten: false, cause })
  return operationError(refused, true)
}
