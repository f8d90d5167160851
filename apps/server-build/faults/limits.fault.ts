import { readdir } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../test/real-redis.ts'
import { ask, many, open, type Peer } from './peer.ts'
import { reportsIn } from './reports.ts'
import { type FaultServer, serverOf, startServer } from './server.ts'
import { sharedLibrary } from './shared-library.ts'

// Our C code at its limits, with the address sanitizer. `.ci/run` runs only this file.

/** The initial number of slots of Redis's event table. */
const FIRST_SLOTS = 1024

const otherAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

let program: string
let server: FaultServer

beforeAll(async () => {
  program = await serverOf('patched', { sanitizer: 'address' })
})

afterEach(async () => {
  await server.program.stop(30_000)
  expect([...reportsIn(server.lines).values()]).toEqual([])
  expect(server.lines.join('\n')).not.toMatch(/assert|crashed|Guru/i)
})

async function expectAllServed(peers: readonly Peer[]): Promise<void> {
  const before = peers.map((peer) => peer.text.length)
  for (const peer of peers) peer.write('PING\r\n')
  await Promise.all(
    peers.map((peer, index) => peer.until(new RegExp(`^[^]{${before[index]}}\\+PONG\r\n$`))),
  )
}

async function expectRejected(error: RegExp, localAddress?: string): Promise<void> {
  const peer = await open(server.port, localAddress)
  expect(await peer.over).toBe('end')
  expect(peer.text).toMatch(error)
}

const full = /^-ERR max number of clients reached/

async function stat(field: string): Promise<number> {
  const [, value] =
    new RegExp(`^${field}:(\\d+)\r$`, 'm').exec(await ask(server.port, 'INFO')) ?? []
  if (value === undefined) throw new Error(`INFO has no ${field}`)
  return Number(value)
}

describe.each(['1', '2'])('with %s I/O threads', (threads) => {
  const start = async (config: Record<string, string>) => {
    server = await startServer(program, { 'io-threads': threads, ...config })
  }

  test('a client is rejected whose descriptor is the first beyond the event table', async () => {
    await start({ maxclients: '1100' })
    const control = await open(server.port)
    control.write('PING\r\n')
    await control.until(/PONG/)
    const taken = (await readdir(`/proc/${server.program.pid}/fd`)).length
    const idle = await many(FIRST_SLOTS - taken, server.port)
    control.write(`CONFIG SET maxclients ${idle.length + 1}\r\n`)
    await control.until(/\+OK/)
    // Repeated, because the cron may have a descriptor open for a moment.
    for (let times = 0; times < 20; times += 1) await expectRejected(full)
    await expectAllServed([control, ...idle])
  })

  test.skipIf(otherAddress === undefined)(
    'protected mode rejects clients beyond the initial event table (needs an address besides 127.0.0.1)',
    async () => {
      await start({ maxclients: '1500', 'protected-mode': 'yes' })
      const idle = await many(1_200, server.port)
      for (let times = 0; times < 5; times += 1) {
        await expectRejected(/^-DENIED Redis is running in protected mode/, otherAddress)
      }
      await expectAllServed(idle)
    },
  )

  test('MIGRATE closes a socket beyond the initial event table', async () => {
    await start({ maxclients: '1500' })
    const idle = await many(1_200, server.port)
    await ask(server.port, 'SET key value')
    const closedPort = await freePort()
    expect(await ask(server.port, `MIGRATE 127.0.0.1 ${closedPort} key 0 1000`)).toMatch(/^-IOERR/)
    await expectAllServed(idle)
  })

  test('clients connect and disconnect at maxclients', async () => {
    const room = 50
    await start({ maxclients: '1200', 'max-new-connections-per-cycle': '1000' })
    const own = await server.sockets()
    const idle = await many(1_200 - room, server.port)
    let served = 0
    for (let round = 0; round < 40; round += 1) {
      const peers = await Promise.all(Array.from({ length: room + 5 }, () => open(server.port)))
      expect(await server.sockets()).toBeLessThanOrEqual(own + 1_201)
      for (const peer of peers) peer.write('PING\r\nQUIT\r\n')
      await Promise.all(peers.map((peer) => peer.over))
      served += peers.filter((peer) => peer.text === '+PONG\r\n+OK\r\n').length
      for (const { text } of peers) expect(text).toMatch(/^(\+PONG\r\n\+OK\r\n|-ERR max.*\r\n)?$/)
    }
    expect(served).toBeGreaterThan(40 * room * 0.5)
    await expectAllServed(idle)
  })

  test('a module deletes an event and forks while it is loaded', async () => {
    await start({ loadmodule: await sharedLibrary('module.c') })
    expect(await ask(server.port, 'MODULE LIST')).toContain('limits')
    expect(await stat('total_forks')).toBe(1)
  })
})
