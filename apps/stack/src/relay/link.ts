export interface LinkOptions {
  /** Round-trip time in milliseconds, without transmission time; half of it per direction. */
  roundTrip: number
  /** Bits per second per direction, shared by all connections; Infinity: no limit. */
  bandwidth: number
}

const PACKET_BYTES = 1_460
const MIN_WINDOW_BYTES = 64 * 1024

// Node's timers have a resolution of 1 ms and may be another one late. For the last 2 ms, the event loop spins: an
// iteration takes microseconds, but the core is busy.
const SPIN_MS = 2

/** One direction of a link. Parcels arrive in order, after transmission and delay. */
export class Direction {
  /** Longer data is sent in parts of this size, as in packets; at least one packet. */
  readonly partBytes: number
  /** Maximum in flight per connection: twice the bandwidth-delay product, at least 64 KiB. */
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

  /** Sends a parcel. Zero bytes: a connection opens or closes. */
  send(bytes: number, arrive: () => void): void {
    this.#wireFreeAt = Math.max(performance.now(), this.#wireFreeAt) + bytes / this.#bytesPerMs
    this.#parcels.push({ due: this.#wireFreeAt + this.#delayMs, arrive })
    if (this.#parcels.length === 1) this.#plan()
  }

  /** With true, nothing arrives and data waits, until the next call with false. */
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
