import { Client, type Dispatcher } from 'undici'
import { TIMEOUT_S } from '../http/generator.ts'
import { type Call, headersOf } from '../http/workload.ts'

/** What a connection tells about its request. */
export interface Listener {
  /** It is written to the socket now. */
  sent(connection: Connection): void
  /** The whole answer is there. */
  answered(connection: Connection, status: number): void
  /** There will be no answer: an error code, or `timeout`. */
  failed(connection: Connection, reason: string): void
}

/** An HTTP connection that has one request at a time. It opens with the first, and again when lost. */
export class Connection implements Dispatcher.DispatchHandler {
  /** When its request was due, for the listener. */
  due = 0
  readonly #client: Client
  readonly #calls: readonly Dispatcher.DispatchOptions[]
  #listener: Listener | undefined
  #turn = 0
  #status = 0

  /** @param calls what it sends, over and over; at least one. */
  constructor(url: string, calls: readonly Call[]) {
    this.#client = new Client(url, {
      connectTimeout: TIMEOUT_S * 1_000,
      headersTimeout: TIMEOUT_S * 1_000,
      bodyTimeout: TIMEOUT_S * 1_000,
      keepAliveTimeout: 600_000, // at low rates a connection is idle for long
      allowH2: false,
    })
    this.#calls = calls.map((call) => ({
      method: call.method,
      path: call.path,
      headers: headersOf(call),
      body: call.body,
    }))
  }

  /** Sends the next call; there must be none under way. */
  send(listener: Listener): void {
    this.#listener = listener
    const call = this.#calls[this.#turn++ % this.#calls.length]
    if (call) this.#client.dispatch(call, this)
  }

  /** Ends the connection, and with it what is under way. */
  async close(): Promise<void> {
    await this.#client.destroy()
  }

  onRequestStart(): void {
    this.#listener?.sent(this)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number): void {
    this.#status = status
  }

  onResponseData(): void {}

  onResponseEnd(): void {
    this.#listener?.answered(this, this.#status)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    const { code = 'error', cause } = error as NodeJS.ErrnoException
    const inner = (cause as NodeJS.ErrnoException | null | undefined)?.code
    this.#listener?.failed(this, code.endsWith('_TIMEOUT') ? 'timeout' : (inner ?? code))
  }
}
