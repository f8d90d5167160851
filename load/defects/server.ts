import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server with known behaviour. */
export interface KnownServer {
  url: string
  /** The arrival time of each request, in milliseconds since the first. */
  readonly arrivals: readonly number[]
  /** The number of answers sent. */
  readonly answered: number
  close(): Promise<void>
}

export interface Behaviour {
  /** The latency of every answer. */
  delayMs: number
  /** No answers are sent in this period after the first request. */
  stall?: { fromMs: number; toMs: number }
}

/** Starts an HTTP server on a free loopback port. It answers every request with 200 and `ok`. */
export async function startKnownServer({ delayMs, stall }: Behaviour): Promise<KnownServer> {
  const arrivals: number[] = []
  let startedAt: number | undefined
  let answered = 0
  const server = createServer((request, response) => {
    startedAt ??= performance.now()
    const arrivedAt = performance.now() - startedAt
    arrivals.push(arrivedAt)
    request.resume()
    const ready = arrivedAt + delayMs
    const stalled = stall && ready > stall.fromMs && arrivedAt < stall.toMs
    setTimeout(
      () => {
        answered++
        response.end('ok')
      },
      stalled ? stall.toMs + delayMs - arrivedAt : delayMs,
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    get answered() {
      return answered
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
