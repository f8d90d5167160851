import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { many, open, type Peer } from '../faults/peer.ts'
import { startServer } from '../faults/server.ts'
import { sharedLibrary } from '../faults/shared-library.ts'
import { patchedServer } from './real-redis.ts'

// Patches 0008 and 0010: addresses of clients, and the index of clients.

const start = async (config: Record<string, string> = {}) =>
  startServer(await patchedServer(), config)

/** Sends commands and returns their replies. */
async function talk(peer: Peer, commands: string): Promise<string> {
  const before = peer.text.length
  peer.write(`${commands}\r\nPING\r\n`)
  await peer.until(new RegExp(`^[^]{${before}}[^]*\\+PONG\r\n$`))
  return peer.text.slice(before, -'+PONG\r\n'.length)
}

test('clients are found by their ID until they disconnect', async () => {
  const { port } = await start()
  const control = await open(port)
  const peers = await many(300, port)
  const ids: number[] = []
  for (const peer of peers) ids.push(Number((await talk(peer, 'CLIENT ID')).slice(1)))
  for (const peer of peers) peer.write('BLPOP list 0\r\n')
  const waiting = (count: number) =>
    expect.poll(() => talk(control, 'INFO clients')).toContain(`blocked_clients:${count}\r\n`)
  await waiting(300)
  for (const peer of peers.slice(0, 150)) peer.socket.destroy()
  await waiting(150)
  const unblock = ids.map((id) => `CLIENT UNBLOCK ${id}`).join('\r\n')
  expect(await talk(control, unblock)).toBe(':0\r\n'.repeat(150) + ':1\r\n'.repeat(150))
})

test.each([
  ['notice', 0],
  ['verbose', 20],
])('at loglevel %s, addresses of clients are formatted %s times', async (loglevel, times) => {
  const calls = join(await temporaryFolder(), 'calls')
  const preload = await sharedLibrary('count-inet-ntop.c')
  const server = await startServer(
    await patchedServer(),
    { loglevel },
    { env: { LD_PRELOAD: preload, INET_NTOP_CALLS: calls } },
  )
  const counted = async () => (await readFile(calls, 'utf8').catch(() => '')).length
  const before = await counted()
  const ports = (await many(20, server.port)).map(({ socket }) => socket.localPort)
  expect((await counted()) - before).toBe(times)
  const accepted = server.lines.filter((line) => line.includes('Accepted 127.0.0.1:'))
  expect(accepted).toHaveLength(times)
  if (times > 0) for (const port of ports) expect(accepted.join('\n')).toContain(`:${port}`)
})
