export interface LinkOptions {
  /** Round-trip time in ms without what the bandwidth adds; half of it is spent each way. */
  roundTripMs: number
  /** Each way, shared by all connections; Infinity for no limit. */
  bitsPerSecond: number
}

/** `requests` go to the server, `replies` come from it. */
export type Way = 'requests' | 'replies'

interface Parcel {
  readonly due: number
  readonly arrive: () => void
  next: Parcel | undefined
}

const PACKET_BYTES = 1_460
const WINDOW_BYTES = 64 * 1024

/** One direction of a link. Parcels arrive in order: after their turn on the wire and the delay. */
export class Direction {
  /** A wire carries packets, so longer data is sent in parts of this size: at least one packet. */
  readonly partBytes: number
  /** How much one connection may have in flight: twice what the link holds, at least 64 KiB. */
  readonly windowBytes: number
  readonly #delayMs: number
  readonly #bytesPerMs: number
  readonly #onWaiting: () => void
  #wireFreeAt = 0
  #first: Parcel | undefined
  #last: Parcel | undefined
  /** While true, nothing arrives. */
  stalled = false

  /** @param onWaiting is called when `due` has become sooner. */
  constructor({ roundTripMs, bitsPerSecond }: LinkOptions, onWaiting: () => void) {
    this.#delayMs = roundTripMs / 2
    this.#bytesPerMs = bitsPerSecond / 8_000
    this.#onWaiting = onWaiting
    this.partBytes = Math.max(PACKET_BYTES, Math.floor(this.#bytesPerMs))
    const held = Math.ceil(this.#bytesPerMs * this.#delayMs)
    this.windowBytes = Math.max(WINDOW_BYTES, Number.isFinite(held) ? 2 * held : 64 * WINDOW_BYTES)
  }

  /** When the next parcel arrives, as of `performance.now()`; Infinity for none. */
  get due(): number {
    return this.stalled || !this.#first ? Number.POSITIVE_INFINITY : this.#first.due
  }

  /** Sends a parcel. Zero bytes: a connection that opens or closes. */
  send(bytes: number, arrive: () => void): void {
    this.#wireFreeAt = Math.max(performance.now(), this.#wireFreeAt) + bytes / this.#bytesPerMs
    const parcel: Parcel = { due: this.#wireFreeAt + this.#delayMs, arrive, next: undefined }
    const { due } = this
    if (this.#last) this.#last.next = parcel
    else this.#first = parcel
    this.#last = parcel
    if (this.due < due) this.#onWaiting()
  }

  /** Delivers what is due. */
  deliver(now: number): void {
    while (this.#first && this.due <= now) {
      const { arrive, next } = this.#first
      this.#first = next
      if (!next) this.#last = undefined
      arrive()
    }
  }
}

// Node's timers have whole milliseconds and may be one more late. The last two are spent going round
// the event loop, which takes microseconds each time and keeps a core busy.
const SPIN_MS = 2

/** A distant link: two directions, each with its own delay and bandwidth. */
export class Link {
  readonly requests: Direction
  readonly replies: Direction
  #closed = false
  #timer: NodeJS.Timeout | undefined
  #spinning: NodeJS.Immediate | undefined

  constructor(options: LinkOptions) {
    const plan = () => this.#plan()
    this.requests = new Direction(options, plan)
    this.replies = new Direction(options, plan)
  }

  /** Lets nothing arrive at either end until it is called with false; data waits. */
  stall(stalled: boolean): void {
    this.requests.stalled = stalled
    this.replies.stalled = stalled
    this.#plan()
  }

  /** Nothing arrives any more. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    clearImmediate(this.#spinning)
  }

  #plan(): void {
    if (this.#closed || this.#spinning) return
    clearTimeout(this.#timer)
    const due = Math.min(this.requests.due, this.replies.due)
    if (due === Number.POSITIVE_INFINITY) return
    const wait = due - performance.now()
    if (wait > SPIN_MS + 1) this.#timer = setTimeout(() => this.#plan(), wait - SPIN_MS)
    else this.#spinning = setImmediate(() => this.#deliver())
  }

  #deliver(): void {
    const now = performance.now()
    this.requests.deliver(now)
    this.replies.deliver(now)
    this.#spinning = undefined // not before: what is delivered may send more
    this.#plan()
  }
}
