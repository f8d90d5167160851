import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callsDuring, closingIn, freePort, tcpSocket, threadNamed } from '../test/real-redis.ts'
import { ask, open } from './peer.ts'
import { type FaultServer, serverOf, startServer } from './server.ts'

// The patches must also work for clients with TLS. These tests use a build with TLS. Upstream's tests and our
// Tcl tests run with TLS by `npm run test:upstream -- --tls`.

let program: string
let folder: string
beforeAll(async () => {
  program = await serverOf('patched', { tls: true })
  folder = await mkdtemp(join(tmpdir(), 'onetrip-tls-'))
  const files = ['-keyout', join(folder, 'key'), '-out', join(folder, 'certificate')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const args = ['req', '-x509', '-subj', '/CN=localhost', ...kind, ...files]
  execFileSync('openssl', args, { stdio: 'pipe' })
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A server with TLS on one port and without on another. */
async function start(config: Record<string, string>): Promise<FaultServer & { tls: number }> {
  const tls = await freePort()
  const server = await startServer(program, {
    'tls-port': String(tls),
    'tls-cert-file': join(folder, 'certificate'),
    'tls-key-file': join(folder, 'key'),
    'tls-ca-cert-file': join(folder, 'certificate'),
    'tls-auth-clients': 'no',
    'protected-mode': 'yes',
    ...config,
  })
  return { ...server, tls }
}

async function secured(port: number): Promise<TLSSocket> {
  // The certificate is self-signed.
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  return socket
}

/** Sends one command on a new connection. Returns the replies after the server has closed the connection. */
async function conversation(port: number, command: string): Promise<string> {
  const socket = await secured(port)
  let text = ''
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  socket.write(`${command}\r\nQUIT\r\n`)
  await once(socket, 'close')
  return text
}

const cuts: Record<string, (port: number) => Promise<unknown>> = {
  'before the handshake': async (port) => {
    const socket = connectTcp({ port, host: '127.0.0.1' }).on('error', () => {})
    await once(socket, 'connect')
    socket.resetAndDestroy()
  },
  'in the middle of the handshake': async (port) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.destroy()
  },
  'without a TLS close': async (port) => {
    const raw = connectTcp({ port, host: '127.0.0.1' }).on('error', () => {})
    const socket = connect({ socket: raw, rejectUnauthorized: false }).on('error', () => {})
    await once(socket, 'secureConnect')
    socket.write('PING\r\nGE')
    await once(socket, 'data')
    raw.resetAndDestroy()
  },
  'with unread replies': async (port) => {
    const socket = await secured(port)
    socket.pause()
    socket.write('GET large\r\n'.repeat(20))
    socket.destroy()
  },
  blocked: async (port) => {
    const socket = await secured(port)
    socket.write('PING\r\nBLPOP nothing 0\r\n')
    await once(socket, 'data')
    socket.end()
  },
}

describe.each(['1', '2'])('TLS, with %s I/O threads', (threads) => {
  test('new clients have the configured keep-alive, and accepting them sets no option', async () => {
    const { tls, port, program: redis } = await start({ 'io-threads': threads })
    const keepAlive = async () => {
      const socket = await secured(tls)
      socket.write('PING\r\n')
      await once(socket, 'data')
      const seen = await tcpSocket(tls, socket.localPort ?? 0)
      socket.destroy()
      return seen.keepAlive
    }
    expect(await keepAlive()).toBe(300)
    expect(await ask(port, 'CONFIG SET tcp-keepalive 100')).toContain('+OK')
    expect(await keepAlive()).toBe(100)
    const calls = await callsDuring(redis.pid, 'setsockopt,getpeername', async () => {
      for (let clients = 0; clients < 20; clients += 1) await conversation(tls, 'PING')
    })
    expect(calls.filter((call) => /\b(setsockopt|getpeername)\(/.test(call))).toEqual([])
  })

  test('the background thread closes sockets, and only after they were removed from epoll', async () => {
    const server = await start({ 'io-threads': threads })
    const control = await open(server.port)
    control.write('PING\r\n')
    await control.until(/PONG/)
    const before = await server.sockets()
    const calls = await callsDuring(server.program.pid, 'epoll_ctl,close', async () => {
      const clients = await Promise.all(Array.from({ length: 50 }, () => secured(server.tls)))
      for (const client of clients) client.write('PING\r\n')
      await Promise.all(clients.map((client) => once(client, 'data')))
      control.write('CLIENT KILL TYPE normal\r\n')
      await control.until(/:50\r\n/)
      await expect.poll(() => server.sockets()).toBe(before)
    })
    control.socket.destroy()
    const closer = await threadNamed(server.program.pid, 'bio_close_sock')
    expect(closingIn(calls, closer)).toMatchObject({ closed: 50, tooEarly: [] })
  })

  test.each(Object.keys(cuts))('cut connection: %s', async (name) => {
    const server = await start({ 'io-threads': threads })
    const before = await server.sockets()
    await ask(server.port, `SET large ${'x'.repeat(500_000)}`)
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 20 }, () => cuts[name]?.(server.tls)))
    }
    const clients = () => ask(server.port, 'INFO clients')
    await expect.poll(clients, { timeout: 30_000 }).toMatch(/^connected_clients:1\r$/m)
    await expect.poll(() => server.sockets(), { timeout: 30_000 }).toBe(before)
    expect(await conversation(server.tls, 'PING')).toBe('+PONG\r\n+OK\r\n')
    expect(server.lines.join('\n')).not.toMatch(/assert|crashed|Guru/i)
  })
})
