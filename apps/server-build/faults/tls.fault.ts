import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { makeCertificates } from '@onetrip/stack/testing/certificates.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callsDuring, freePort, tcpSocket } from '../test/real-redis.ts'
import { ask, many } from './peer.ts'
import { reportsIn } from './reports.ts'
import { type FaultServer, serverOf, startServer } from './server.ts'

// The patches must also work for clients with TLS. These tests use a build with TLS. Upstream's tests and our
// Tcl tests run with TLS by `npm run test:upstream -- --tls`.

/** The initial number of slots of Redis's event table. */
const FIRST_SLOTS = 1024

let program: string
let folder: string
let certificates: ReturnType<typeof makeCertificates>
beforeAll(async () => {
  program = await serverOf('patched', { tls: true })
  folder = await mkdtemp(join(tmpdir(), 'onetrip-tls-'))
  certificates = makeCertificates(folder)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A server with TLS on one port and without on another. */
async function start(
  config: Record<string, string>,
  redis = program,
): Promise<FaultServer & { tls: number }> {
  const tls = await freePort()
  const server = await startServer(redis, {
    'tls-port': String(tls),
    'tls-cert-file': certificates.server.certFile,
    'tls-key-file': certificates.server.keyFile,
    'tls-ca-cert-file': certificates.authority.certFile,
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

test('a client with the first descriptor beyond the event table, with the address sanitizer', async () => {
  const checked = await serverOf('patched', { tls: true, sanitizer: 'address' })
  const server = await start({ maxclients: '1100' }, checked)
  const taken = (await readdir(`/proc/${server.program.pid}/fd`)).length
  await many(FIRST_SLOTS - taken - 5, server.port)
  // Several, because the cron may have a descriptor open for a moment.
  for (let clients = 0; clients < 10; clients += 1) {
    const client = await secured(server.tls)
    client.write('PING\r\n')
    await once(client, 'data')
  }
  await server.program.stop(30_000)
  expect([...reportsIn(server.lines).values()]).toEqual([])
})

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

  test('many clients that are killed at once see their end', async () => {
    const server = await start({ 'io-threads': threads })
    const before = await server.sockets()
    const clients = await Promise.all(Array.from({ length: 100 }, () => secured(server.tls)))
    for (const client of clients) client.resume().write('PING\r\n')
    await Promise.all(clients.map((client) => once(client, 'data')))
    const ends = clients.map((client) => once(client, 'end')) // with a close_notify
    expect(await ask(server.port, 'CLIENT KILL TYPE normal')).toBe(':100\r\n')
    await Promise.all(ends)
    await expect.poll(() => server.sockets()).toBe(before)
  })

  test('many clients are disconnected at once while their sessions have unread data', async () => {
    const limits = { 'client-output-buffer-limit': 'normal 20000 0 0', 'io-threads': threads }
    const server = await start(limits)
    const clients = await Promise.all(Array.from({ length: 40 }, () => secured(server.tls)))
    const closed = clients.map((client) => once(client.resume(), 'close'))
    // Redis reads the rest of the argument, and the reply exceeds the limit. The session has also decrypted PING.
    server.program.signal('SIGSTOP')
    const command = `*2\r\n$4\r\nECHO\r\n$40000\r\n${'x'.repeat(40_000)}\r\nPING\r\n`
    for (const client of clients) client.write(command)
    server.program.signal('SIGCONT')
    await Promise.all(closed)
    expect(await conversation(server.tls, 'PING')).toBe('+PONG\r\n+OK\r\n')
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
