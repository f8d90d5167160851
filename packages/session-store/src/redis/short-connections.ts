import type { Cluster, Redis } from 'ioredis'
import { publishConnection } from '../diagnostics.ts'
import type { Server } from './client.ts'
import { notSent } from './outcomes.ts'
import type { Sender } from './sender.ts'
import { subscribeWith } from './subscribing.ts'
import { oneByOne } from './wires.ts'

/**
 * The pattern that the source articles warn of: every operation opens a connection, with ioredis's default handshake
 * (HELLO, client info, INFO as a ready check) but without retries, sends one command per round trip, and closes the
 * connection with QUIT.
 */
export function shortConnections(server: Server, deadlineMs: number): Sender {
  const connectionMs = timeoutOfConnection(deadlineMs)
  const connections = new ShortConnections<Redis>(connectionMs, (redis) => redis.quit())
  return {
    name: oneByOne.name,
    async send({ commands }) {
      const redis = server.short(connectionMs)
      return await connections.use(redis, () => oneByOne.send(redis, commands))
    },
    subscribe: (...subscription) => subscribeWith(server.short(connectionMs), ...subscription),
    connections: () => ({ connections: 0, ready: 0, server: server.name }),
    close: async () => connections.close(),
  }
}

/** Before the deadline of the store, because errors of the connection are more precise. */
export const timeoutOfConnection = (deadlineMs: number) => Math.ceil(0.9 * deadlineMs)

/** Connections that are each used for one operation. */
export class ShortConnections<Client extends Redis | Cluster> {
  readonly #open = new Set<Client>()
  readonly #timeoutMs: number
  readonly #quit: (client: Client) => Promise<unknown>

  constructor(timeoutMs: number, quit: (client: Client) => Promise<unknown>) {
    this.#timeoutMs = timeoutMs
    this.#quit = quit
  }

  /** Connects, works, and closes the connection. @throws StoreError `ONETRIP_NOT_SENT` without a connection. */
  async use<Result>(client: Client, work: () => Promise<Result>): Promise<Result> {
    this.#open.add(client)
    const timer = setTimeout(close, this.#timeoutMs, client)
    client.on('connect', publishConnection)
    client.once('end', () => {
      clearTimeout(timer)
      this.#open.delete(client)
    })
    try {
      await connect(client)
      const result = await work()
      // After QUIT, Redis closes first. The side that closes first keeps the port in TIME_WAIT.
      await this.#quit(client).catch(() => close(client))
      return result
    } catch (error) {
      close(client)
      throw error
    }
  }

  close(): void {
    for (const client of this.#open) close(client)
  }
}

async function connect(client: Redis | Cluster): Promise<void> {
  let reason: unknown
  client.on('error', (error) => {
    reason = error
  })
  try {
    await client.connect()
  } catch (error) {
    throw notSent('no connection could be opened', reason ?? error)
  }
}

/** Closes an open connection. After a failed attempt to connect, `disconnect()` would start a timer of 2 s. */
function close(client: Redis | Cluster): void {
  if (client.status !== 'end') client.disconnect()
}
