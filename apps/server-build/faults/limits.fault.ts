import { readdir } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../test/real-redis.ts'
import { ask, many, open, type Peer } from './peer.ts'
import { reportsIn } from './reports.ts'
import { type FaultServer, serverOf, startServer } from './server.ts'
import { sharedLibrary } from './shared-library.ts'

// What our C code does at its limits, under the address sanitizer. `.ci/run` runs this file alone.

/** Redis's event table has so many slots before it grows. */
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

async function expectRefused(why: RegExp, localAddress?: string): Promise<void> {
  const peer = await open(server.port, localAddress)
  expect(await peer.over).toBe('end')
  expect(peer.text).toMatch(why)
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

  test('clients are refused at maxclients, beyond the first event table', async () => {
    await start({ maxclients: '1500' })
    const idle = await many(1_500, server.port)
    for (let times = 0; times < 5; times += 1) await expectRefused(full)
    await expectAllServed(idle)
  })

  test('a client is refused with the first descriptor beyond the event table', async () => {
    await start({ maxclients: '1100' })
    const control = await open(server.port)
    control.write('PING\r\n')
    await control.until(/PONG/)
    const taken = (await readdir(`/proc/${server.program.pid}/fd`)).length
    const idle = await many(FIRST_SLOTS - taken, server.port)
    control.write(`CONFIG SET maxclients ${idle.length + 1}\r\n`)
    await control.until(/\+OK/)
    // Not once: the cron may hold a descriptor for a moment.
    for (let times = 0; times < 20; times += 1) await expectRefused(full)
    await expectAllServed([control, ...idle])
  })

  test.skipIf(otherAddress === undefined)(
    'protected mode refuses clients beyond the first event table (needs an address besides 127.0.0.1)',
    async () => {
      await start({ maxclients: '1500', 'protected-mode': 'yes' })
      const idle = await many(1_200, server.port)
      for (let times = 0; times < 5; times += 1) {
        await expectRefused(/^-DENIED Redis is running in protected mode/, otherAddress)
      }
      await expectAllServed(idle)
    },
  )

  test('MIGRATE closes a socket beyond the first event table', async () => {
    await start({ maxclients: '1500' })
    const idle = await many(1_200, server.port)
    await ask(server.port, 'SET key value')
    const nobody = await freePort()
    expect(await ask(server.port, `MIGRATE 127.0.0.1 ${nobody} key 0 1000`)).toMatch(/^-IOERR/)
    await expectAllServed(idle)
  })

  test('clients come and go at maxclients', async () => {
    const room = 50
    await start({ maxclients: '1200', 'close-sockets-in-background': 'yes' })
    const idle = await many(1_200 - room, server.port)
    let served = 0
    for (let round = 0; round < 40; round += 1) {
      const peers = await Promise.all(Array.from({ length: room + 5 }, () => open(server.port)))
      for (const peer of peers) peer.write('PING\r\nQUIT\r\n')
      await Promise.all(peers.map((peer) => peer.over))
      served += peers.filter((peer) => peer.text === '+PONG\r\n+OK\r\n').length
      for (const { text } of peers) expect(text).toMatch(/^(\+PONG\r\n\+OK\r\n|-ERR max.*\r\n)?$/)
    }
    expect(served).toBeGreaterThan(40 * room * 0.5)
    expect(await stat('background_closed_sockets')).toBeGreaterThan(0)
    await expectAllServed(idle)
  })

  test('a module asks for an event and forks while it is loaded', async () => {
    await start({ loadmodule: await sharedLibrary('module.c') })
    expect(await ask(server.port, 'MODULE LIST')).toContain('limits')
    expect(await stat('total_forks')).toBe(1)
  })
})
