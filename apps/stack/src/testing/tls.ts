import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { createSecureContext, createServer } from 'node:tls'
import { onTestFinished } from 'vitest'
import { type makeCertificates, SERVER_NAME } from './certificates.ts'

export interface TlsFront {
  readonly port: number
  /** The SNI name of each client; false: none. */
  readonly names: (string | false)[]
}

/**
 * A TLS proxy in front of a Redis on a Unix socket, like that of a managed service: only clients with `redis.test` or
 * `localhost` as SNI name get the right certificate, and clients need a certificate of the authority. Closed after the
 * current test.
 */
export async function tlsFrontForThisTest(
  socket: string,
  certificates: ReturnType<typeof makeCertificates>,
): Promise<TlsFront> {
  const { authority, server, otherServer } = certificates
  const names: (string | false)[] = []
  const right = createSecureContext({ cert: server.cert, key: server.key, ca: authority.cert })
  const front = createServer({
    cert: otherServer.cert,
    key: otherServer.key,
    ca: authority.cert,
    requestCert: true,
    rejectUnauthorized: true,
    SNICallback: (name, done) =>
      done(null, [SERVER_NAME, 'localhost'].includes(name) ? right : undefined),
  })
  const open = new Set<{ destroy(): unknown }>()
  front.on('secureConnection', (client) => {
    names.push(client.servername as string | false)
    const redis = connect(socket)
    for (const end of [client, redis]) {
      open.add(end)
      end.on('error', () => {})
      end.on('close', () => {
        client.destroy()
        redis.destroy()
      })
    }
    client.pipe(redis).pipe(client)
  })
  front.on('tlsClientError', () => {})
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  onTestFinished(async () => {
    for (const end of open) end.destroy()
    await front[Symbol.asyncDispose]()
  })
  return { port: (front.address() as AddressInfo).port, names }
}
