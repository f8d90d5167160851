import { Client, type Dispatcher } from 'undici'
import { TIMEOUT_S } from '../http/generator.ts'
import { type Call, headersOf } from '../http/workload.ts'

/** An HTTP connection that has one request at a time. It opens with the first, and again when lost. */
export class Connection implements Dispatcher.DispatchHandler {
  readonly #client: Client
  readonly #calls: readonly Dispatcher.DispatchOptions[]
  #turn = 0
  #status = 0
  #onSent = () => {}
  #outcome = Promise.withResolvers<string>()

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

  /**
   * Sends the next call; the last one must be complete. Resolves with the status when the whole answer is
   * there, or with an error code or `timeout`. Never rejects.
   *
   * @param onSent is called when it is written to the socket.
   */
  send(onSent = () => {}): Promise<string> {
    this.#onSent = onSent
    this.#outcome = Promise.withResolvers()
    const call = this.#calls[this.#turn++ % this.#calls.length]
    if (call) this.#client.dispatch(call, this)
    return this.#outcome.promise
  }

  /** Ends the connection, and with it a request in flight. */
  async close(): Promise<void> {
    await this.#client.destroy()
  }

  onRequestStart(): void {
    this.#onSent()
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number): void {
    this.#status = status
  }

  onResponseData(): void {}

  onResponseEnd(): void {
    this.#outcome.resolve(String(this.#status))
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    const { code = 'error', cause } = error as NodeJS.ErrnoException
    const inner = (cause as NodeJS.ErrnoException | null | undefined)?.code
    this.#outcome.resolve(code.endsWith('_TIMEOUT') ? 'timeout' : (inner ?? code))
  }
}
