import { randomUUID } from 'node:crypto'
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

/** How often a message of its own must arrive, also without ends. */
const BEAT_EVERY_MS = 1_000
/** Of several servers, how many may be asked to pass a message on: those that are down cannot. */
const MAX_PUBLISHERS = 3
const RETRY_MS = 250
const QUIET_MS = 60_000
const CHECKED_TOGETHER = 100

/** Reports the ends of sessions, of all processes, to the listeners of this one. */
export class EndReporter {
  readonly #runner: Runner
  readonly #settings: Settings
  readonly #listeners = new Set<SessionEndListener>()
  #isInformed = false
  #quietUntil = 0
  /** The held sessions to check after a loss. */
  readonly #unchecked = new Map<SessionEndListener, readonly string[]>()
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
    if (!this.#isInformed) this.callBack(() => listener.lost?.())
    return () => this.#remove(listener)
  }

  #remove(listener: SessionEndListener): void {
    this.#unchecked.delete(listener)
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return
    this.#first = undefined
    this.#isInformed = false
    this.#stop.abort()
  }

  /** Replaces a lost subscription, until `signal`. */
  async #stayInformed(attempted: PromiseWithResolvers<void>, signal: AbortSignal) {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await this.#subscribe(signal, async (beat) => {
          if (attempt > 0) await beat()
          attempted.resolve()
          this.#isInformed = true
          if (attempt === 0) return
          this.#tellAll((listener) => listener.regained?.())
          for (const one of this.#listeners) this.#unchecked.set(one, this.#heldBy(one))
        })
      } catch (error) {
        attempted.reject(withoutSubscription(error as Error))
      }
      if (signal.aborted) break
      if (this.#isInformed) this.#tellAll((listener) => listener.lost?.())
      this.#isInformed = false
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
    attempted.reject(withoutSubscription(new Error('the store is closed')))
  }

  /**
   * Rejects when the subscription is lost, when `onSubscribed` rejects, or at `signal`. A subscription that is still connected may be cut off, behind
   * a proxy or among servers that are divided: then messages that are published with the connection for commands do not
   * arrive, and neither would ends.
   */
  async #subscribe(
    signal: AbortSignal,
    onSubscribed: (beat: () => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const { keys, deadlineMs } = this.#settings
    const channels = keys.parts().map(({ login }) => login)
    const own = `${channels[0]}${randomUUID()}`
    let onBeat: (() => void) | undefined
    const sender = this.#runner.sender as SubscribingSender
    const { ready, lost, close } = sender.subscribe([...channels, own], (id) => {
      if (id === own) onBeat?.()
      else if (id !== '') this.#tellAll((listener) => listener.ended(id))
    })
    const end = new AbortController()
    void lost.then(() => end.abort())
    const over = AbortSignal.any([signal, end.signal])
    const orLost = async (work: Promise<unknown>) => {
      const { promise: isOver, reject } = Promise.withResolvers<never>()
      const fail = () => reject(notSent('the subscription to the end of sessions was lost'))
      over.addEventListener('abort', fail)
      try {
        if (over.aborted) fail()
        await Promise.race([work, isOver])
      } finally {
        over.removeEventListener('abort', fail)
      }
    }
    const answered = async (work: Promise<unknown>) => {
      const late = setTimeout(close, deadlineMs)
      await orLost(work).finally(() => clearTimeout(late))
    }
    const beat = async () => {
      const { promise: heard, resolve } = Promise.withResolvers<void>()
      onBeat = resolve
      await orLost(this.#publish(own))
      await answered(heard)
    }
    try {
      await answered(ready)
      await onSubscribed(beat)
      for (;;) {
        await Promise.all([
          this.#checkHeld(),
          delay(BEAT_EVERY_MS, undefined, { signal: over, ref: false }).then(beat),
        ])
      }
    } finally {
      close()
    }
  }

  /** Publishes a message over one of the servers that hold sessions. @throws StoreError if none of a few can. */
  async #publish(channel: string): Promise<void> {
    const nodes = [...(await this.#runner.nodes())].sort(() => Math.random() - 0.5)
    const publish = {
      commands: [['PUBLISH', channel, channel]],
      readOnly: true,
      read: () => undefined,
    } as const
    let failure: unknown = notSent('no server is known')
    for (const node of nodes.slice(0, MAX_PUBLISHERS)) {
      try {
        return await this.#runner.runOn(node, publish)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /** Reports the held sessions that are gone. Those that could not be checked, such as on a dead node, stay unchecked. */
  async #checkHeld(): Promise<void> {
    const { keys } = this.#settings
    for (const [listener, ids] of [...this.#unchecked]) {
      const parts = [...Map.groupBy(ids, (id) => keys.login(id)).values()]
      const left = await Promise.all(parts.map((part) => this.#check(listener, part)))
      this.#unchecked.delete(listener)
      if (left.flat().length > 0) this.#unchecked.set(listener, left.flat())
    }
  }

  /** Returns those that could not be checked. */
  async #check(listener: SessionEndListener, part: readonly string[]): Promise<readonly string[]> {
    let left = [...part]
    for (const ids of batches(part, CHECKED_TOGETHER)) {
      const states = await this.#runner.run(statesOf(this.#settings.keys, ids)).catch(() => null)
      if (states === null) return left
      left = left.slice(ids.length)
      for (const [index, id] of ids.entries()) {
        const state = states[index]
        if (!state || isIdle(this.#settings, state)) this.callBack(() => listener.ended(id))
      }
    }
    return left
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
