import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP port in front of Redis's Unix socket, which can lose requests or replies. */
export class Relay {
  readonly #server
  readonly #pairs = new Set<[client: Socket, redis: Socket]>()
  /** What is lost at the next command: the command itself, or its replies. The connection then closes. */
  #cut: { phase: 'before' | 'after'; done: () => void } | null = null

  constructor(path: string) {
    this.#server = createServer((client) => this.#relay(client, path))
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** Cuts the connection that sends the next command: before Redis reads it, or after Redis has executed it. */
  cutNext(phase: 'before' | 'after'): Promise<void> {
    return new Promise((done) => {
      this.#cut = { phase, done }
    })
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #relay(client: Socket, path: string): void {
    const redis = connect(path)
    const pair: [Socket, Socket] = [client, redis]
    this.#pairs.add(pair)
    const end = () => {
      this.#pairs.delete(pair)
      for (const socket of pair) socket.destroy()
    }
    for (const socket of pair) socket.setNoDelay().on('error', end).on('close', end)
    client.on('data', (data) => {
      const cut = this.#cut
      if (cut === null) return void redis.write(data)
      this.#cut = null
      if (cut.phase === 'after') {
        redis.write(data)
        redis.once('data', () => {
          end()
          cut.done()
        })
        return
      }
      end()
      cut.done()
    })
    redis.on('data', (data) => void (client.destroyed || client.write(data)))
  }
}
