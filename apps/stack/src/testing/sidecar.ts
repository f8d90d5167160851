import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { type Endpoint, endpoint } from '../relay/units.ts'

/** A proxy in front of a server, like the sidecar of a service mesh. */
export interface Sidecar {
  /** The port on 127.0.0.1; 0 if it listens on a Unix socket. */
  readonly port: number
  /** Open connections, counted at both ends. */
  readonly connections: number
  /** Connections accepted since it last broke that pass nothing. */
  readonly hanging: number
  /** Closes all connections. Until `mend`, it accepts connections and passes nothing over them, not even later. */
  breakDown(): void
  /** Passes new connections again. */
  mend(): void
  /** Passes new connections to another server; those that are open stay. */
  redirect(to: string): void
  /** Resolves when so many connections hang. */
  untilHanging(count?: number): Promise<void>
}

/**
 * Starts a sidecar until the end of the test.
 *
 * @param to The server: the path of its Unix socket, or `host:port`.
 * @param listen Where it listens. Default: a free port of 127.0.0.1.
 */
export async function sidecarForThisTest(
  to: string,
  listen: Endpoint = { host: '127.0.0.1', port: 0 },
): Promise<Sidecar> {
  const events = new EventEmitter()
  const sockets = new Set<Socket>()
  let target = to
  let broken = false
  let hanging = 0
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    return socket
  }
  const server = createServer((client) => {
    keep(client)
    if (broken) {
      hanging++
      client.resume()
      events.emit('hanging')
      return
    }
    const behind = keep(connect(endpoint(target)))
    client.pipe(behind).pipe(client)
    client.once('close', () => behind.destroy())
    behind.once('close', () => client.destroy())
  })
  await once(server.listen(listen), 'listening')
  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(async () => {
    closeAll()
    await server[Symbol.asyncDispose]()
  })
  const address = server.address()
  return {
    port: typeof address === 'string' ? 0 : (address as AddressInfo).port,
    get connections() {
      return sockets.size
    },
    get hanging() {
      return hanging
    },
    breakDown() {
      broken = true
      hanging = 0
      closeAll()
    },
    mend() {
      broken = false
    },
    redirect(other) {
      target = other
    },
    async untilHanging(count = 1) {
      while (hanging < count) await once(events, 'hanging')
    },
  }
}
