import { connect } from 'node:net'

/** A request as bytes, since a client library would not send most of these. */
export interface Wire {
  method?: string
  path?: string
  /** Each as it is sent; `host` is added unless there is one. */
  headers?: readonly string[]
  /** With a `content-length` of its own, unless `headers` has one or says `transfer-encoding`. */
  body?: string | Buffer
}

export function bytesOf({ method = 'GET', path = '/', headers = [], body }: Wire): Buffer {
  const has = (name: string) =>
    headers.some((header) => header.toLowerCase().startsWith(`${name}:`))
  const content = Buffer.from(body ?? '')
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...(has('host') ? [] : ['host: 127.0.0.1']),
    ...headers,
    ...(body === undefined || has('content-length') || has('transfer-encoding')
      ? []
      : [`content-length: ${content.length}`]),
    // So that the end of the answer is the end of the connection.
    'connection: close',
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), content])
}

/**
 * Sends these bytes on a connection of their own.
 *
 * @returns the status of every answer on it, and their text, once the server has closed it.
 */
export async function exchange(
  port: number,
  bytes: Buffer,
): Promise<{ statuses: number[]; text: string }> {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  const chunks: Buffer[] = []
  try {
    for await (const chunk of socket) chunks.push(chunk as Buffer)
  } catch {
    // Reset: it had sent more than the server wanted to read.
  }
  const text = Buffer.concat(chunks).toString()
  const statuses = Array.from(text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm), ([, status]) =>
    Number(status),
  )
  return { statuses, text }
}
