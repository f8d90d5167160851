import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { RedisOptions } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'

/** For connecting, and for an answer. */
const TIMEOUT_MS = 3_000

/** A command as Redis reads it from the wire. */
export function encode(command: readonly (string | number)[]): Buffer {
  const parts = command.map(String)
  const bulks = parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`)
  return Buffer.from(`*${parts.length}\r\n${bulks.join('')}`)
}

/**
 * A plain socket to Redis. It sends nothing itself, no greeting either.
 *
 * @param reading false leaves every reply unread: not even the socket's own buffer is filled.
 * @throws the socket's error when it cannot be connected.
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
 * Returns a function that sends commands and waits for a reply that is known beforehand, one call after the
 * other: the least that a client in this language can do, since nothing is parsed. It throws a Problem when
 * Redis answers something else, and an Error when the connection ends.
 */
export function exchanger(socket: Socket): (commands: Buffer, expected: Buffer) => Promise<void> {
  let expected: Buffer = Buffer.alloc(0)
  let received = 0
  let reply = Promise.withResolvers<void>()
  reply.promise.catch(() => {}) // the connection may end before the first call
  const late = new Error(`no answer for ${TIMEOUT_MS / 1_000} s`)
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(late))
  socket.on('error', (error) => reply.reject(error))
  socket.on('close', () => reply.reject(new Error('Redis closed the connection')))
  socket.on('data', (chunk: Buffer) => {
    if (!expected.subarray(received, received + chunk.length).equals(chunk)) {
      const [line] = chunk.toString('latin1').split('\r\n', 1)
      reply.reject(new Problem(`Redis gave an answer that was not expected: ${line}`))
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
