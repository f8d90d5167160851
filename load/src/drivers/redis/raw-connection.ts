import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { RedisOptions } from '@onetrip/session-store'

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
