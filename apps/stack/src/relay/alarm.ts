// Node's timers are of whole milliseconds, and late by up to one more. What is due sooner is waited
// for by going round the event loop, which takes a few microseconds each time and keeps a core busy.
const SPIN_MS = 2

/** Calls `ring` at a time of the monotonic clock, late by microseconds, not milliseconds. */
export class Alarm {
  readonly #ring: (now: number) => number
  #due = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #spinning: NodeJS.Immediate | undefined

  /** @param ring does what is due, and returns when it wants to be called next (Infinity: not at all). */
  constructor(ring: (now: number) => number) {
    this.#ring = ring
  }

  /** Rings at `due` (of `performance.now()`), or before, if that was asked for. */
  set(due: number): void {
    if (due >= this.#due) return
    this.#due = due
    if (!this.#spinning) this.#plan()
  }

  /** Will not ring any more. */
  stop(): void {
    this.#due = Number.NEGATIVE_INFINITY // nothing is sooner
    clearTimeout(this.#timer)
    clearImmediate(this.#spinning)
  }

  #plan(): void {
    clearTimeout(this.#timer)
    if (this.#due === Number.POSITIVE_INFINITY) return
    const wait = this.#due - performance.now()
    if (wait > SPIN_MS + 1) this.#timer = setTimeout(() => this.#plan(), wait - SPIN_MS)
    else this.#spinning = setImmediate(() => this.#look())
  }

  #look(): void {
    this.#spinning = undefined
    const now = performance.now()
    if (now >= this.#due) {
      this.#due = Number.POSITIVE_INFINITY
      const next = this.#ring(now) // which may call set()
      this.#due = Math.min(this.#due, next)
    }
    if (!this.#spinning) this.#plan()
  }
}
