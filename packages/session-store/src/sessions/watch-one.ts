import { wrongType } from '../input.ts'
import type { Settings } from '../options.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { EndReporter } from './report-ends.ts'

/** The longest time of `setTimeout`. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** Calls back when single sessions end: one listener of `EndReporter` for all of them. */
export class SessionWatches {
  readonly #ends: EndReporter
  readonly #tokens: Tokens
  readonly #now: () => number
  /** By session id. */
  readonly #watches = new Map<string, Set<() => void>>()
  #listening: Promise<() => void> | undefined

  constructor(ends: EndReporter, tokens: Tokens, { now }: Settings) {
    this.#ends = ends
    this.#tokens = tokens
    this.#now = now
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
      this.#ends.callBack(onEnd)
    }
    const endAtExpiry = () => {
      const left = expiresAt - this.#now()
      if (left <= 0) end()
      else timer = setTimeout(endAtExpiry, Math.min(left, MAX_DELAY_MS)).unref()
    }
    this.#add(id, end) // before the check, so that an end during the check is reported
    try {
      await this.#listening
      await check(this.#tokens.verify(token)) // it may have expired meanwhile
    } catch (error) {
      stop()
      throw error
    }
    if (!stopped) endAtExpiry()
    return stop
  }

  #add(id: string, end: () => void): void {
    this.#watches.set(id, (this.#watches.get(id) ?? new Set()).add(end))
    this.#listening ??= this.#ends.listen({
      ended: (id) => {
        for (const end of this.#watches.get(id) ?? []) end()
      },
      held: () => this.#watches.keys(),
    })
  }

  #remove(id: string, end: () => void): void {
    const own = this.#watches.get(id)
    own?.delete(end)
    if (own?.size === 0) this.#watches.delete(id)
    if (this.#watches.size > 0) return
    this.#listening?.then((stop) => stop()).catch(() => undefined)
    this.#listening = undefined
  }
}
