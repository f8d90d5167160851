/** One wait that has a deadline, in a ring with all others. */
interface Deadline {
  at: number
  onLate(): void
  before: Deadline
  after: Deadline
}

/** Deadlines of the same length, with one timer for all: a timer for each operation takes more CPU. */
export class Deadlines {
  readonly #ms: number
  /** Between the latest and the earliest deadline. (A `Set` of deadlines makes the garbage collector work more.) */
  readonly #ends = { at: Number.POSITIVE_INFINITY, onLate() {} } as Deadline
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number) {
    this.#ms = ms
    this.#ends.before = this.#ends
    this.#ends.after = this.#ends
  }

  /** Calls `onLate` unless `stop` is called with the returned object within the time. */
  start(onLate: () => void): Deadline {
    const after = this.#ends
    const { before } = after
    const deadline = { at: performance.now() + this.#ms, onLate, before, after }
    before.after = deadline
    after.before = deadline
    this.#timer ??= setTimeout(() => this.#check(), this.#ms)
    return deadline
  }

  stop(deadline: Deadline): void {
    const { before, after } = deadline
    before.after = after
    after.before = before
    deadline.before = deadline
    deadline.after = deadline
    if (this.#ends.after !== this.#ends) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #check(): void {
    const now = performance.now()
    for (let first = this.#ends.after; first.at <= now; first = this.#ends.after) {
      this.stop(first)
      first.onLate()
    }
    const { at } = this.#ends.after
    this.#timer = at === Infinity ? undefined : setTimeout(() => this.#check(), at - now)
  }
}
