import type { Socket } from 'node:net'
import type { Direction } from './link.ts'

/** Closes a connection so that its other end notices: by a reset, where its kind has one (TCP). */
export function reset(socket: Socket): void {
  if (socket.destroyed) return
  if (socket.remoteFamily === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

/**
 * What goes from one socket to another: bytes, the end, a reset, in order. It reads no further than
 * the direction's window, and goes on when the sink has taken what arrived.
 */
export class Flow {
  readonly #source: Socket
  readonly #sink: Socket
  readonly #direction: Direction
  readonly #arrived: (Buffer | 'end' | 'reset')[] = []
  #underway = 0
  #cut: { bytes: number; then: (withheld: number) => void } | undefined
  #over = false

  constructor(source: Socket, sink: Socket, direction: Direction) {
    this.#source = source
    this.#sink = sink
    this.#direction = direction
    source.on('data', (chunk: Buffer) => this.#read(chunk))
    source.on('end', () => this.#send('end'))
    source.on('error', () => this.#send('reset'))
    sink.on('drain', () => this.#handOver())
  }

  /**
   * Hands over `bytes` more and nothing after them, then calls `then` with the number of bytes that it
   * withholds of what arrived with the last of them. 0: the cut may be between two replies. Asked again,
   * it cuts after whichever number is reached first.
   */
  cutAfter(bytes: number, then: (withheld: number) => void): void {
    this.#cut = { bytes: Math.min(bytes, this.#cut?.bytes ?? bytes), then }
    if (bytes > 0) return
    this.#over = true
    then(0)
  }

  #read(chunk: Buffer): void {
    const { partBytes, windowBytes } = this.#direction
    for (let start = 0; start < chunk.length; start += partBytes) {
      this.#send(chunk.subarray(start, start + partBytes))
    }
    if (this.#underway >= windowBytes) this.#source.pause()
  }

  #send(parcel: Buffer | 'end' | 'reset'): void {
    const bytes = typeof parcel === 'string' ? 0 : parcel.length
    this.#underway += bytes
    this.#direction.send(bytes, () => {
      this.#arrived.push(parcel)
      this.#handOver()
    })
  }

  #handOver(): void {
    while (!this.#over && !this.#sink.writableNeedDrain) {
      const parcel = this.#arrived.shift()
      if (parcel === undefined) return
      if (parcel === 'reset') reset(this.#sink)
      if (this.#sink.destroyed) this.#over = true
      else if (parcel === 'end') this.#sink.end()
      else if (parcel !== 'reset') this.#write(parcel)
    }
  }

  #write(bytes: Buffer): void {
    const cut = this.#cut
    if (cut && bytes.length >= cut.bytes) {
      this.#over = true
      const withheld = bytes.length - cut.bytes
      this.#sink.write(bytes.subarray(0, cut.bytes), () => cut.then(withheld))
      return
    }
    if (cut) cut.bytes -= bytes.length
    this.#sink.write(bytes)
    this.#underway -= bytes.length
    const { windowBytes } = this.#direction
    if (this.#source.isPaused() && this.#underway <= windowBytes / 2) this.#source.resume()
  }
}
