import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { publishWarning } from '../diagnostics.ts'
import { StoreError } from '../errors.ts'
import { wrongType } from '../input.ts'
import type { Settings } from '../options.ts'
import { isRefusal, notSent, operationError } from '../redis/outcomes.ts'
import { batches } from '../redis/walk.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { isIdle, statesOf } from './check.ts'

/** The longest time of `setTimeout`. */
const MAX_DELAY_MS = 2 ** 31 - 1
/** How often a message of its own must arrive, also without ends. */
const BEAT_EVERY_MS = 1_000
/** Of several servers, how many may be asked to pass a message on: those that are down cannot. */
const MAX_PUBLISHERS = 3
const RETRY_MS = 250
const QUIET_MS = 60_000
const CHECKED_TOGETHER = 100

/**
 * Calls back when sessions end, in any process: whatever ends a session publishes its id (`publishEnd`). One connection
 * subscribes, as long as a session is watched:
 *
 *     subscribed ──lost──▶ pause ──▶ subscribed again: check all watched sessions, ends may have been missed
 */
export class SessionWatches {
  readonly #settings: Settings
  readonly #tokens: Tokens
  /** By session id. */
  readonly #watches = new Map<string, Set<() => void>>()
  /** The sessions to check after a loss. */
  #unchecked = new Set<string>()
  #quietUntil = 0
  /** Settles with the first attempt to subscribe. Undefined without watches. */
  #subscribed: Promise<void> | undefined
  #stop = new AbortController()

  constructor(settings: Settings, tokens: Tokens) {
    this.#settings = settings
    this.#tokens = tokens
  }

  /** @param check Rejects if the session has ended. */
  async watch(
    token: string,
    onEnd: () => unknown,
    check: (id: string) => Promise<unknown>,
  ): Promise<() => void> {
    const expiresAt = this.#tokens.expiresAt(token)
    if (typeof onEnd !== 'function') throw wrongType('onEnd must be a function')
    const id = this.#tokens.verify(token)
    let timer: NodeJS.Timeout | undefined
    let stopped = false
    const stop = () => {
      stopped = true
      clearTimeout(timer)
      this.#remove(id, end)
    }
    const end = () => {
      stop()
      Promise.resolve()
        .then(onEnd)
        .catch((error: unknown) => this.#warn(error))
    }
    const endAtExpiry = () => {
      const left = expiresAt - this.#settings.now()
      if (left <= 0) end()
      else timer = setTimeout(endAtExpiry, Math.min(left, MAX_DELAY_MS)).unref()
    }
    // Before the check, so that an end during the check is reported.
    this.#watches.set(id, (this.#watches.get(id) ?? new Set()).add(end))
    try {
      this.#subscribed ??= this.#stayInformed()
      await this.#subscribed
      await check(this.#tokens.verify(token)) // it may have expired meanwhile
    } catch (error) {
      stop()
      throw error
    }
    if (!stopped) endAtExpiry()
    return stop
  }

  #remove(id: string, end: () => void): void {
    const own = this.#watches.get(id)
    own?.delete(end)
    if (own?.size === 0) this.#watches.delete(id)
    if (this.#watches.size > 0) return
    this.#subscribed = undefined
    this.#stop.abort()
  }

  #ended(id: string): void {
    for (const end of this.#watches.get(id) ?? []) end()
  }

  /** Replaces a lost subscription. Settles with the first attempt. */
  #stayInformed(): Promise<void> {
    this.#stop = new AbortController()
    const signal = AbortSignal.any([this.#stop.signal, this.#settings.runner.closing])
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stay = async () => {
      for (let attempt = 0; !signal.aborted; attempt++) {
        await this.#subscribe(signal, attempt > 0, resolve).catch((error: Error) =>
          reject(withoutSubscription(error)),
        )
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined)
      }
      reject(withoutSubscription(new Error('the store is closed')))
    }
    void stay()
    return promise
  }

  /**
   * Rejects when the subscription is lost, or at `signal`. A subscription that is still connected may be cut off, behind
   * a proxy or among servers that are divided: then messages that are published with the connection for commands do not
   * arrive, and neither would ends.
   */
  async #subscribe(signal: AbortSignal, again: boolean, onSubscribed: () => void): Promise<void> {
    const { keys, deadlineMs, runner } = this.#settings
    const { sender } = runner
    if (!sender.subscribe) throw new TypeError(`the sender ${sender.name} cannot subscribe`)
    const channels = keys.parts().map(({ login }) => login)
    const own = `${channels[0]}${randomUUID()}`
    let onBeat: (() => void) | undefined
    const { ready, lost, close } = sender.subscribe([...channels, own], (id) => {
      if (id === own) onBeat?.()
      else this.#ended(id)
    })
    const end = new AbortController()
    void lost.then(() => end.abort())
    const over = AbortSignal.any([signal, end.signal])
    const unlessLost = async (work: Promise<unknown>, timeoutMs = deadlineMs) => {
      const { promise: isOver, reject } = Promise.withResolvers<never>()
      const fail = () => reject(notSent('the subscription to the end of sessions was lost'))
      const late = setTimeout(fail, timeoutMs)
      over.addEventListener('abort', fail)
      try {
        if (over.aborted) fail()
        await Promise.race([work, isOver])
      } finally {
        clearTimeout(late)
        over.removeEventListener('abort', fail)
      }
    }
    const beat = async () => {
      const { promise: heard, resolve } = Promise.withResolvers<void>()
      onBeat = resolve
      await unlessLost(this.#publish(own), 2 * MAX_PUBLISHERS * deadlineMs)
      await unlessLost(heard)
    }
    try {
      await unlessLost(ready)
      if (again) {
        await beat()
        this.#unchecked = new Set(this.#watches.keys())
      }
      onSubscribed()
      for (;;) {
        await Promise.all([
          this.#check(this.#unchecked),
          delay(BEAT_EVERY_MS, undefined, { signal: over, ref: false }).then(beat),
        ])
      }
    } finally {
      close()
    }
  }

  /** Publishes a message over one of the servers that hold sessions. @throws StoreError if none of a few can. */
  async #publish(channel: string): Promise<void> {
    const { runner } = this.#settings
    const nodes = [...(await runner.nodes())].sort(() => Math.random() - 0.5)
    const publish = {
      commands: [['PUBLISH', channel, channel]],
      readOnly: true,
      read: () => undefined,
    } as const
    let failure: unknown = notSent('no server is known')
    for (const node of nodes.slice(0, MAX_PUBLISHERS)) {
      try {
        return await runner.runOn(node, publish)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /** Ends the watches of sessions that are gone. Those that cannot be checked, such as on a dead node, stay in the set. */
  async #check(unchecked: Set<string>): Promise<void> {
    const { runner, keys } = this.#settings
    const parts = [...Map.groupBy(unchecked, (id) => keys.login(id)).values()]
    const checking = parts.map(async (part) => {
      for (const ids of batches(part, CHECKED_TOGETHER)) {
        const states = await runner.run(statesOf(keys, ids))
        for (const [index, id] of ids.entries()) {
          const state = states[index]
          unchecked.delete(id)
          if (!state || isIdle(this.#settings, state)) this.#ended(id)
        }
      }
    })
    await Promise.allSettled(checking)
  }

  /** At most once a minute: thousands of sessions may end together. */
  #warn(error: unknown): void {
    if (performance.now() < this.#quietUntil) return
    this.#quietUntil = performance.now() + QUIET_MS
    const message = 'a function that was called at the end of a session failed'
    publishWarning({ code: 'ONETRIP_CALLBACK_FAILED', message, error })
  }
}

function withoutSubscription(cause: Error): Error {
  if (cause instanceof TypeError) return cause
  const message = 'Redis did not accept the subscription to the end of sessions'
  if (!isRefusal(cause)) return operationError(notSent(message, cause), true)
  const refused = new StoreError('ONETRIP_REFUSED', message, { mayHaveWritten: false, cause })
  return operationError(refused, true)
}
