import { Alarm } from './alarm.ts'

export interface LinkOptions {
  /** Time there and back, without what the bandwidth adds; half of it each way. Milliseconds. */
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

/** One direction of a link. What is sent arrives in order, after its turn on the wire and the way. */
export class Direction {
  /** What is longer than this is sent in parts, since a wire carries packets: at least one packet. */
  readonly partBytes: number
  /** How much one connection may have on the way: twice what the way holds, at least 64 KiB. */
  readonly windowBytes: number
  readonly #delayMs: number
  readonly #bytesPerMs: number
  readonly #due: (at: number) => void
  #wireFreeAt = 0
  #first: Parcel | undefined
  #last: Parcel | undefined
  #stalled = false

  /** @param due is told when something new will arrive. */
  constructor(delayMs: number, bitsPerSecond: number, due: (at: number) => void) {
    this.#delayMs = delayMs
    this.#bytesPerMs = bitsPerSecond / 8_000
    this.#due = due
    this.partBytes = Math.max(PACKET_BYTES, Math.floor(this.#bytesPerMs))
    const held = Math.ceil(this.#bytesPerMs * delayMs)
    this.windowBytes = Math.max(WINDOW_BYTES, Number.isFinite(held) ? 2 * held : 64 * WINDOW_BYTES)
  }

  /** Puts something on the way. No bytes: an opening or a closing. */
  send(bytes: number, arrive: () => void): void {
    const now = performance.now()
    this.#wireFreeAt = Math.max(now, this.#wireFreeAt) + bytes / this.#bytesPerMs
    const parcel: Parcel = { due: this.#wireFreeAt + this.#delayMs, arrive, next: undefined }
    if (this.#last) this.#last.next = parcel
    else this.#first = parcel
    this.#last = parcel
    if (!this.#stalled) this.#due(parcel.due)
  }

  /** Hands over what is due. Returns when the next is (Infinity: nothing is on the way). */
  deliver(now: number): number {
    while (!this.#stalled && this.#first && this.#first.due <= now) {
      const { arrive, next } = this.#first
      this.#first = next
      if (!next) this.#last = undefined
      arrive()
    }
    return this.#stalled || !this.#first ? Number.POSITIVE_INFINITY : this.#first.due
  }

  /** Lets nothing arrive until `resume`. */
  stall(): void {
    this.#stalled = true
  }

  resume(): void {
    this.#stalled = false
    if (this.#first) this.#due(this.#first.due)
  }
}

/** A distant link: two directions, each with its own delay and bandwidth. */
export class Link {
  readonly requests: Direction
  readonly replies: Direction
  readonly #alarm: Alarm

  constructor({ roundTripMs, bitsPerSecond }: LinkOptions) {
    this.#alarm = new Alarm((now) =>
      Math.min(this.requests.deliver(now), this.replies.deliver(now)),
    )
    const due = (at: number) => this.#alarm.set(at)
    this.requests = new Direction(roundTripMs / 2, bitsPerSecond, due)
    this.replies = new Direction(roundTripMs / 2, bitsPerSecond, due)
  }

  /** Nothing arrives any more. */
  close(): void {
    this.#alarm.stop()
  }
}
