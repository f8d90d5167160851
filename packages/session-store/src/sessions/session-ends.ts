import { setTimeout as delay } from 'node:timers/promises'
import { publishWarning } from '../diagnostics.ts'
import { StoreError } from '../errors.ts'
import { checkFunctions } from '../input.ts'
import { isIdle, statesOf } from '../operations/sessions.ts'
import type { Settings } from '../options.ts'
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

type SubscribingSender = Required<Pick<Sender, 'subscribe'>>

/** How often Redis must show that the subscription is alive. */
const CHECK_EVERY_MS = 1_000
const RETRY_MS = 250
const QUIET_MS = 60_000
const CHECKED_TOGETHER = 100

/** Reports the ends of sessions, of all processes, to the listeners of this one. */
export class SessionEnds {
  readonly #runner: Runner
  readonly #settings: Settings
  readonly #listeners = new Set<SessionEndListener>()
  #isSubscribed = false
  #quietUntil = 0
  /** Settles with the first attempt to subscribe. Undefined without listeners. */
  #first: Promise<void> | undefined
  #stop = new AbortController()

  constructor(runner: Runner, settings: Settings) {
    this.#runner = runner
    this.#settings = settings
  }

  /** As `onSessionEnded`. */
  async listen(listener: SessionEndListener): Promise<() => void> {
    checkListener(listener)
    const { sender, closing } = this.#runner
    if (!sender.subscribe) throw new TypeError(`the sender ${sender.name} cannot subscribe`)
    this.#listeners.add(listener)
    if (!this.#first) {
      this.#stop = new AbortController()
      const attempted = Promise.withResolvers<void>()
      this.#first = attempted.promise
      void this.#stayInformed(attempted, AbortSignal.any([this.#stop.signal, closing]))
    }
    try {
      await this.#first
    } catch (error) {
      this.#remove(listener)
      throw error
    }
    if (!this.#isSubscribed) this.callBack(() => listener.lost?.())
    return () => this.#remove(listener)
  }

  #remove(listener: SessionEndListener): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return
    this.#first = undefined
    this.#isSubscribed = false
    this.#stop.abort()
  }

  /** Replaces a lost subscription, until `signal`. */
  async #stayInformed(attempted: PromiseWithResolvers<void>, signal: AbortSignal) {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await this.#subscribe(signal, async () => {
          attempted.resolve()
          if (attempt === 0) return
          this.#tellAll((listener) => listener.regained?.())
          for (const listener of this.#listeners) await this.#checkHeld(listener)
        })
      } catch (error) {
        attempted.reject(withoutSubscription(error as Error))
      }
      if (signal.aborted) break
      if (this.#isSubscribed) this.#tellAll((listener) => listener.lost?.())
      this.#isSubscribed = false
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
    attempted.reject(withoutSubscription(new Error('the store is closed')))
  }

  /** Rejects when the subscription is lost, when `onSubscribed` rejects, or at `signal`. */
  async #subscribe(signal: AbortSignal, onSubscribed: () => Promise<void>): Promise<void> {
    const { keys, deadlineMs } = this.#settings
    const channels = keys.parts().map(({ login }) => login)
    const sender = this.#runner.sender as SubscribingSender
    const { ready, lost, ping, close } = sender.subscribe(channels, (id) => {
      if (id !== '') this.#tellAll((listener) => listener.ended(id))
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
      if (!signal.aborted) this.#isSubscribed = true
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

  async #checkHeld(listener: SessionEndListener): Promise<void> {
    for (const ids of batches(this.#heldBy(listener), CHECKED_TOGETHER)) {
      const states = await this.#runner.run(statesOf(this.#settings.keys, ids))
      for (const [index, id] of ids.entries()) {
        const state = states[index]
        if (!state || isIdle(this.#settings, state)) this.callBack(() => listener.ended(id))
      }
    }
  }

  #tellAll(what: (listener: SessionEndListener) => unknown): void {
    for (const listener of this.#listeners) this.callBack(() => what(listener))
  }

  #heldBy(listener: SessionEndListener): string[] {
    try {
      return [...(listener.held?.() ?? [])]
    } catch (error) {
      this.#warn(error)
      return []
    }
  }

  /** Calls a function of the application. Its error becomes a warning: it must not keep others from being called. */
  callBack(call: () => unknown): void {
    Promise.resolve()
      .then(call)
      .catch((error: unknown) => this.#warn(error))
  }

  /** At most once a minute: thousands of sessions may end together. */
  #warn(error: unknown): void {
    if (performance.now() < this.#quietUntil) return
    this.#quietUntil = performance.now() + QUIET_MS
    const message = 'a function that was called at the end of a session failed'
    publishWarning({ code: 'ONETRIP_CALLBACK_FAILED', message, error })
  }
}

/** @throws TypeError unless all its parts are functions. */
function checkListener(listener: SessionEndListener): void {
  const { held, lost, regained } = listener ?? {}
  const given = Object.entries({ held, lost, regained }).filter(([, call]) => call !== undefined)
  checkFunctions('the listener', listener, ['ended', ...given.map(([name]) => name)])
}

function withoutSubscription(cause: Error): StoreError {
  const message = 'Redis did not accept the subscription to the end of sessions'
  if (!isRefusal(cause)) return operationError(notSent(message, cause), true)
  const refused = new StoreError('ONETRIP_REFUSED', message, { mayHaveWritten: false, cause })
  return operationError(refused, true)
}
