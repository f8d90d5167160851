import { type Call, TIMEOUT_S } from '@onetrip/stack/measure/workload.ts'
import { Client } from 'undici'

/** An HTTP connection with one request in flight. It connects for the first request, and again after it was lost. */
export class Connection {
  readonly #client: Client
  readonly #calls: readonly Call[]
  #turn = 0

  /** @param calls at least one. They are sent in turn. */
  constructor(url: string, calls: readonly Call[]) {
    this.#client = new Client(url, {
      connectTimeout: TIMEOUT_S * 1_000,
      headersTimeout: TIMEOUT_S * 1_000,
      bodyTimeout: TIMEOUT_S * 1_000,
      keepAliveTimeout: 600_000, // at low rates, a connection is idle for a long time
      allowH2: false,
    })
    this.#calls = calls
  }

  /**
   * Sends the next call. The previous one must be complete. Resolves with the status after the whole answer, or with
   * an error code or `timeout`. Never rejects.
   */
  send(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    const call = this.#calls[this.#turn++ % this.#calls.length]
    let outcome = ''
    if (call) {
      this.#client.dispatch(call, {
        onRequestStart() {},
        onResponseStart(_, status) {
          outcome = String(status)
        },
        onResponseData() {},
        onResponseEnd: () => resolve(outcome),
        onResponseError: (_, error) => resolve(codeOf(error)),
      })
    }
    return promise
  }

  /** Closes the connection and aborts a request in flight. */
  close = (): Promise<void> => this.#client.destroy()
}

function codeOf({ code = 'error', cause }: NodeJS.ErrnoException): string {
  const inner = (cause as NodeJS.ErrnoException | undefined)?.code
  return code.endsWith('_TIMEOUT') ? 'timeout' : (inner ?? code)
}
