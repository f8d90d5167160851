import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { RedisOptions } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'

/** For connecting, and for a reply. */
const TIMEOUT_MS = 3_000

/** Encodes a command in the Redis protocol. */
export function encode(command: readonly (string | number)[]): Buffer {
  const parts = command.map(String)
  const bulks = parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`)
  return Buffer.from(`*${parts.length}\r\n${bulks.join('')}`)
}

/**
 * Opens a plain socket to Redis. It sends no commands by itself.
 *
 * @param reading whether to read from the socket. With false, replies stay in the kernel's buffers.
 * @throws the socket's error; an Error after three seconds without a connection.
 */
export async function rawSocket(
  { path, host = '127.0.0.1', port = 6379 }: RedisOptions,
  { reading = true }: { reading?: boolean } = {},
): Promise<Socket> {
  const socket = path ? connect({ path }) : connect({ host, port })
  if (!reading) socket.pause()
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    await once(socket, 'connect', { signal })
  } catch (error) {
    socket.destroy()
    throw signal.aborted ? new Error(`no connection after ${TIMEOUT_MS / 1_000} s`) : error
  }
  return socket.setNoDelay(true)
}

/**
 * Returns a function that sends commands and waits for an expected reply, one call at a time. It does not parse
 * replies, so it has the lowest possible cost of a client in Node. It throws a Problem when the reply is different,
 * and an Error when the connection ends.
 */
export function exchanger(socket: Socket): (commands: Buffer, expected: Buffer) => Promise<void> {
  let expected: Buffer = Buffer.alloc(0)
  let received = 0
  let reply = Promise.withResolvers<void>()
  reply.promise.catch(() => {}) // the connection may end before the first call
  const late = new Error(`no reply for ${TIMEOUT_MS / 1_000} s`)
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(late))
  socket.on('error', (error) => reply.reject(error))
  socket.on('close', () => reply.reject(new Error('Redis closed the connection')))
  socket.on('data', (chunk: Buffer) => {
    if (!expected.subarray(received, received + chunk.length).equals(chunk)) {
      const [line] = chunk.toString('latin1').split('\r\n', 1)
      reply.reject(new Problem(`Redis sent an unexpected reply: ${line}`))
    }
    received += chunk.length
    if (received >= expected.length) reply.resolve()
  })
  return async (commands, replies) => {
    if (commands.length === 0) return
    if (socket.destroyed) throw new Error('Redis closed the connection')
    expected = replies
    received = 0
    reply = Promise.withResolvers()
    socket.write(commands)
    await reply.promise
  }
}
