import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { RedisOptions } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'

/** A server that does not answer for so long is taken for gone. */
const PATIENCE_MS = 3_000

/** A command as Redis reads it from the wire. */
export function encode(command: readonly (string | number)[]): Buffer {
  const parts = command.map(String)
  const bulks = parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`)
  return Buffer.from(`*${parts.length}\r\n${bulks.join('')}`)
}

/**
 * What has to be said on a new connection before the first command, and what Redis answers to it: a
 * login and the choice of a database, where the address asks for them.
 */
export function greeting({ username, password, db }: RedisOptions): {
  commands: Buffer
  replies: Buffer
} {
  const commands = [
    ...(password ? [encode(['AUTH', ...(username ? [username] : []), password])] : []),
    ...(db ? [encode(['SELECT', db])] : []),
  ]
  return {
    commands: Buffer.concat(commands),
    replies: Buffer.from('+OK\r\n'.repeat(commands.length)),
  }
}

/** An address without a host or path is 127.0.0.1:6379, as for ioredis. */
function openSocket({ path, host = '127.0.0.1', port = 6379, tls }: RedisOptions): Socket {
  if (path) return connectPlain({ path })
  return tls ? connectTls({ host, port, servername: host }) : connectPlain({ host, port })
}

/**
 * A plain socket to Redis: nothing between the program and the wire, and no greeting is sent.
 *
 * @param reading false leaves every reply unread: not even the socket's own buffer is filled.
 * @throws the socket's error when it cannot be connected.
 */
export async function rawSocket(
  options: RedisOptions,
  { reading = true }: { reading?: boolean } = {},
): Promise<Socket> {
  const socket = openSocket(options)
  if (!reading) socket.pause()
  const signal = AbortSignal.timeout(PATIENCE_MS)
  try {
    await once(socket, options.tls ? 'secureConnect' : 'connect', { signal })
  } catch (error) {
    socket.destroy()
    throw signal.aborted ? new Error(`no connection after ${PATIENCE_MS / 1_000} s`) : error
  }
  socket.setNoDelay(true)
  return socket
}

/**
 * A way to send commands whose reply is known beforehand and to wait for it, one call after the other:
 * the least that a client in this language can do, since nothing is parsed.
 *
 * Each call throws a Problem when Redis answers something else, and an Error when the connection ends.
 */
export function exchanger(socket: Socket): (commands: Buffer, expected: Buffer) => Promise<void> {
  let waiting:
    | { expected: Buffer; received: number; settle: PromiseWithResolvers<void> }
    | undefined
  const fail = (error: Error) => waiting?.settle.reject(error)
  socket.setTimeout(PATIENCE_MS, () =>
    socket.destroy(new Error(`no answer for ${PATIENCE_MS / 1_000} s`)),
  )
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('Redis closed the connection')))
  socket.on('data', (chunk: Buffer) => {
    if (!waiting) return
    const { expected, received, settle } = waiting
    if (!expected.subarray(received, received + chunk.length).equals(chunk)) {
      const [line] = chunk.toString('latin1').split('\r\n', 1)
      settle.reject(new Problem(`Redis gave an answer that was not expected: ${line}`))
    }
    waiting.received += chunk.length
    if (waiting.received >= expected.length) settle.resolve()
  })
  return async (commands, expected) => {
    if (commands.length === 0) return
    if (socket.destroyed) throw new Error('Redis closed the connection')
    waiting = { expected, received: 0, settle: Promise.withResolvers() }
    socket.write(commands)
    await waiting.settle.promise
  }
}
