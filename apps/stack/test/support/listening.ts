import { once } from 'node:events'
import { type AddressInfo, createServer, type ListenOptions } from 'node:net'
import { onTestFinished } from 'vitest'

/** Listens until the end of the current test, by default on a free port of 127.0.0.1. Returns the port. */
export async function listening(
  at: ListenOptions = { port: 0, host: '127.0.0.1' },
): Promise<number> {
  const server = createServer().listen(at)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}
