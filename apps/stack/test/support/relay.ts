import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type RelayProcess, type RelayProcessOptions, startRelay } from '../../src/relay/process.ts'
import { addressOf, endpoint } from '../../src/relay/units.ts'
import { temporaryFolder } from '../../src/testing/folders.ts'

/** A server, with its side of each connection. */
export interface TestServer {
  /** The address in the format of `--to`. */
  readonly address: string
  /** Returns the next accepted connection. */
  accepted(): Promise<Socket>
}

/** Starts a server on a Unix socket or a port. Closed with all its connections after the test. */
export async function testServer(
  onConnection?: (socket: Socket) => void,
  kind: 'unix' | 'tcp' = 'unix',
): Promise<TestServer> {
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  const sockets = new Set<Socket>()
  const come: Socket[] = []
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    come.push(socket)
    server.emit('come')
    onConnection?.(socket)
  })
  const at =
    kind === 'unix'
      ? { path: join(await temporaryFolder(), 'server.sock') }
      : { host: '127.0.0.1', port: 0 }
  await new Promise<void>((resolve) => void server.listen(at, resolve))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => void server.close(resolve))
  })
  return {
    address: addressOf(server),
    async accepted() {
      while (come.length === 0) await once(server, 'come')
      return come.shift() as Socket
    },
  }
}

/** Starts a server that sends back what it receives. */
export const echoServer = () => testServer((socket) => void socket.pipe(socket))

/** Starts a relay in front of a server. Stopped after the test. */
export async function relayTo(
  server: Pick<TestServer, 'address'>,
  options: Omit<RelayProcessOptions, 'to'> = {},
): Promise<RelayProcess> {
  const relay = await startRelay({ ...options, to: server.address })
  onTestFinished(() => relay.stop())
  return relay
}

/** Opens a connection to the relay, which stays half-open when the other side ends. Closed after the test. */
export async function clientOf(relay: RelayProcess): Promise<Socket> {
  const client = connecting(relay)
  await once(client, 'connect')
  return client
}

/** Starts a relay in front of an echo server, and opens a connection that has reached the server. */
export async function echoing(
  options?: Omit<RelayProcessOptions, 'to'>,
): Promise<{ relay: RelayProcess; client: Socket }> {
  const relay = await relayTo(await echoServer(), options)
  const client = await clientOf(relay)
  client.write('x')
  await read(client, 1)
  return { relay, client }
}

/** Like `clientOf`, without waiting for the connection: the relay may close a rejected one before that. */
function connecting(relay: RelayProcess): Socket {
  const client = connect({ ...endpoint(relay.address), allowHalfOpen: true, noDelay: true })
  onTestFinished(() => void client.destroy())
  return client
}

/** Reads the next bytes. Later bytes stay in the buffer. */
export async function read(socket: Socket, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let missing = bytes
  while (missing > 0) {
    const chunk: Buffer | null = socket.read(Math.min(missing, socket.readableLength) || undefined)
    if (chunk) chunks.push(chunk)
    else await once(socket, 'readable')
    missing -= chunk?.length ?? 0
  }
  return Buffer.concat(chunks)
}

/** Reads until the other side closes the connection. Returns the text, and the error code of a reset. */
export async function readAll(
  socket: Socket,
): Promise<{ text: string; error: string | undefined }> {
  let text = ''
  try {
    for await (const chunk of socket) text += chunk
    return { text, error: undefined }
  } catch (error) {
    return { text, error: (error as NodeJS.ErrnoException).code }
  }
}
