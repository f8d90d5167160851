import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo, Server, TcpNetConnectOpts } from 'node:net'
import { connect, createServer } from 'node:net'
import { messageOf, Problem } from './problem.ts'

/** A port that one of our programs will listen on, and how the user can change it. */
export interface WantedPort {
  port: number
  host: string
  /** The program that will listen, such as `the batch API`. */
  what: string
  /** The option that changes the port, such as `--port or PORT`. */
  how: string
}

async function listen(port: number, host: string): Promise<Server> {
  const server = createServer().listen({ port, host, exclusive: true })
  await once(server, 'listening')
  return server
}

const close = (server: Server) => server[Symbol.asyncDispose]()

function whyNot({ port, what, how }: WantedPort, error: unknown): string {
  return (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
    ? `Port ${port} for ${what} is already in use. Choose another with ${how}, or end the program that uses it.`
    : `Port ${port} for ${what} cannot be used: ${messageOf(error)}. Choose another with ${how}, or another address with --host or HOST.`
}

/**
 * Checks that every port is free.
 *
 * @throws Problem that names the first port that is not, and the option that changes it.
 */
export async function checkPorts(wanted: readonly WantedPort[]): Promise<void> {
  for (const [index, port] of wanted.entries()) {
    const twin = wanted.slice(0, index).find((other) => other.port === port.port)
    if (twin) {
      throw new Problem(
        `${twin.what} and ${port.what} cannot both use port ${port.port}. Change one with ${twin.how}, or with ${port.how}.`,
      )
    }
    try {
      await close(await listen(port.port, port.host))
    } catch (error) {
      throw new Problem(whyNot(port, error))
    }
  }
}

/**
 * Returns different free ports of 127.0.0.1, in random order. They are below the ephemeral ports (Linux: from
 * 32,768 on), which a client could take before a server listens.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listenAnywhere))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(close))
  return ports
}

/** Above 10,080, which fetch refuses. */
const FREE = { from: 10_100, to: 32_000 }
/** Each process chooses from a part of the range, so that two rarely choose the same port before its server listens. */
const PART = 1_000

async function listenAnywhere(): Promise<Server> {
  const first = FREE.from + ((process.pid * PART) % (FREE.to - FREE.from))
  for (;;) {
    const port = randomInt(first, first + PART)
    const server = await listen(port, '127.0.0.1').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error
    })
    if (server) return server
  }
}

/** Whether a server accepts a connection at this address within two seconds. Never rejects. */
export function accepts(address: TcpNetConnectOpts): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ ...address, timeout: 2_000 })
  for (const event of ['connect', 'timeout', 'error']) {
    socket.once(event, () => {
      socket.destroy()
      resolve(event === 'connect')
    })
  }
  return promise
}
