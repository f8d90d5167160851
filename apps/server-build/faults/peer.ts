import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection that records the received data and how it ended. */
export interface Peer {
  readonly socket: Socket
  /** All data received so far. */
  readonly text: string
  /** Resolves when the connection has ended: `end`, or an error code such as `ECONNRESET`. */
  readonly over: Promise<string>
  write(commands: string): void
  /** Resolves with all received data when it matches; rejects if the connection ends before. */
  until(pattern: RegExp): Promise<string>
}

/**
 * Connects to a server on this machine.
 *
 * @param localAddress the address that the server sees. Default: the kernel's choice.
 * @throws the error of a refused connection.
 */
export async function open(port: number, localAddress?: string): Promise<Peer> {
  // Without localAddress, connect() selects the port and can reuse one in TIME_WAIT.
  const socket = connect({ port, host: '127.0.0.1', ...(localAddress && { localAddress }) })
  let text = ''
  let how = 'end'
  const over = Promise.withResolvers<string>()
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    how = error.code ?? error.message
  })
  socket.once('close', () => over.resolve(how))
  await once(socket, 'connect')
  return {
    socket,
    get text() {
      return text
    },
    over: over.promise,
    write: (commands) => void socket.write(commands),
    async until(pattern) {
      while (!pattern.test(text)) {
        const more = Promise.withResolvers<boolean>()
        const go = () => more.resolve(true)
        const stop = () => more.resolve(false)
        socket.once('data', go)
        socket.once('close', stop)
        const isOpen = !socket.closed && (await more.promise)
        socket.off('data', go)
        socket.off('close', stop)
        if (!isOpen && !pattern.test(text)) {
          throw new Error(`the connection ended (${how}) after ${JSON.stringify(text.slice(-200))}`)
        }
      }
      return text
    },
  }
}

/** Opens connections, a hundred at a time, and waits until each has got a reply. */
export async function many(count: number, port: number): Promise<Peer[]> {
  const peers: Peer[] = []
  for (let begun = 0; begun < count; begun += 100) {
    const part = Array.from({ length: Math.min(100, count - begun) }, () => open(port))
    peers.push(...(await Promise.all(part)))
  }
  for (const peer of peers) peer.write('PING\r\n')
  await Promise.all(peers.map((peer) => peer.until(/PONG/)))
  return peers
}

/** Sends one command on a new connection. Returns the complete reply in the format of the protocol. */
export async function ask(port: number, command: string): Promise<string> {
  const peer = await open(port)
  peer.write(`${command}\r\nQUIT\r\n`)
  await peer.over
  return peer.text.replace(/\+OK\r\n$/, '')
}
