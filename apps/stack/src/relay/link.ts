export interface LinkOptions {
  /** In milliseconds, without what the bandwidth adds; half of it is spent each way. */
  roundTrip: number
  /** Bits per second each way, shared by all connections; Infinity for no limit. */
  bandwidth: number
}

const PACKET_BYTES = 1_460
const MIN_WINDOW_BYTES = 64 * 1024

// Node's timers have whole milliseconds and may be one more late. The last two are spent going round
// the event loop, which takes microseconds each time and keeps a core busy.
const SPIN_MS = 2

/** One direction of a link. Parcels arrive in order: after their turn on the wire and the delay. */
export class Direction {
  /** A wire carries packets, so longer data is sent in parts of this size: at least one packet. */
  readonly partBytes: number
  /** How much one connection may have in flight: twice what the link holds, at least 64 KiB. */
  readonly windowBytes: number
  readonly #delayMs: number
  readonly #bytesPerMs: number
  readonly #parcels: { due: number; arrive: () => void }[] = []
  #wireFreeAt = 0
  #stalled = false
  #timer: NodeJS.Timeout | undefined
  #spinning: NodeJS.Immediate | undefined

  constructor({ roundTrip, bandwidth }: LinkOptions) {
    this.#delayMs = roundTrip / 2
    this.#bytesPerMs = bandwidth / 8_000
    this.partBytes = Math.max(PACKET_BYTES, Math.floor(this.#bytesPerMs))
    const held = Math.ceil(this.#bytesPerMs * this.#delayMs)
    const window = Number.isFinite(held) ? 2 * held : 64 * MIN_WINDOW_BYTES
    this.windowBytes = Math.max(MIN_WINDOW_BYTES, window)
  }

  /** Sends a parcel. Zero bytes: a connection that opens or closes. */
  send(bytes: number, arrive: () => void): void {
    this.#wireFreeAt = Math.max(performance.now(), this.#wireFreeAt) + bytes / this.#bytesPerMs
    this.#parcels.push({ due: this.#wireFreeAt + this.#delayMs, arrive })
    if (this.#parcels.length === 1) this.#plan()
  }

  /** Lets nothing arrive until it is called with false; data waits. */
  stall(stalled: boolean): void {
    this.#stalled = stalled
    this.#plan()
  }

  #plan(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#spinning)
    const next = this.#parcels[0]
    if (this.#stalled || !next) return
    const wait = next.due - performance.now()
    if (wait > SPIN_MS + 1) this.#timer = setTimeout(() => this.#plan(), wait - SPIN_MS)
    else this.#spinning = setImmediate(() => this.#deliver())
  }

  #deliver(): void {
    const now = performance.now()
    let next = this.#parcels[0]
    while (next && next.due <= now) {
      this.#parcels.shift()
      next.arrive()
      next = this.#parcels[0]
    }
    this.#plan()
  }
}
