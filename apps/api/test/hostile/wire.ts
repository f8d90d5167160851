import { connect } from 'node:net'

/** A request as bytes: a client library would not send most of these requests. */
export interface Wire {
  method?: string
  path?: string
  /** Header lines as sent. `host` is added if it is missing. */
  headers?: readonly string[]
  /** `content-length` is added unless `headers` has it or `transfer-encoding`. */
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
    // The connection ends with the response.
    'connection: close',
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), content])
}

/**
 * Sends these bytes on a new connection.
 *
 * @returns The status of each response and the whole text, after the server has closed the connection.
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
    // Reset, because the server had not read all bytes.
  }
  const text = Buffer.concat(chunks).toString()
  const statuses = Array.from(text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm), ([, status]) =>
    Number(status),
  )
  return { statuses, text }
}
