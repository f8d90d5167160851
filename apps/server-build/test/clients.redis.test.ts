import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { many, open, type Peer } from '../faults/peer.ts'
import { startServer } from '../faults/server.ts'
import { sharedLibrary } from '../faults/shared-library.ts'
import { patchedServer } from './real-redis.ts'

// Patches 0014 to 0016: reply buffers, lazily created client state, addresses, and the client index.

const smallest = 1024
const largest = 16 * 1024

const start = async (config: Record<string, string> = {}) =>
  startServer(await patchedServer(), config)

/** Sends commands and returns their replies. */
async function talk(peer: Peer, commands: string): Promise<string> {
  const before = peer.text.length
  peer.write(`${commands}\r\nPING\r\n`)
  await peer.until(new RegExp(`^[^]{${before}}[^]*\\+PONG\r\n$`))
  return peer.text.slice(before, -'+PONG\r\n'.length)
}

/** A field of CLIENT INFO. */
async function field(peer: Peer, name: string): Promise<number> {
  const info = await talk(peer, 'CLIENT INFO')
  return Number(new RegExp(` ${name}=(-?\\d+) `).exec(info)?.[1])
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`

test('the reply buffer of a client starts with 1 kB and grows with the size of replies', async () => {
  const { port } = await start()
  const peer = await open(port)
  expect(await field(peer, 'rbs')).toBe(smallest)
  for (const [length, size] of [
    [1_500, 2 * 1024],
    [5_000, 8 * 1024],
    [10_000, largest],
    [50_000, largest],
  ] as const) {
    const value = 'x'.repeat(length)
    expect(await talk(peer, `SET key ${value}\r\nGET key`)).toBe(`+OK\r\n${bulk(value)}`)
    expect(await field(peer, 'rbs')).toBe(size)
  }
})

test('replies around every buffer size are complete, alone and in a pipeline', async () => {
  const { port } = await start()
  const setter = await open(port)
  for (let size = smallest; size <= largest; size *= 2) {
    for (let length = size - 16; length <= size + 8; length += 1) {
      const value = String(length % 10).repeat(length)
      await talk(setter, `SET key ${value}`)
      const [alone, pipeline] = [await open(port), await open(port)]
      expect(await talk(alone, 'GET key')).toBe(bulk(value))
      const commands = ['ECHO short', 'GET key', 'ECHO short', 'GET key', 'GET key', 'ECHO short']
      const replies = commands.map((command) => bulk(command === 'GET key' ? value : 'short'))
      expect(await talk(pipeline, commands.join('\r\n'))).toBe(replies.join(''))
      alone.socket.destroy()
      pipeline.socket.destroy()
    }
  }
})

test('replies to a slow reader are complete', async () => {
  const { port } = await start()
  const peer = await open(port)
  const value = 'x'.repeat(900)
  await talk(peer, `SET key ${value}`)
  const before = peer.text.length
  peer.socket.pause()
  peer.write('GET key\r\n'.repeat(20_000))
  const other = await open(port)
  await expect.poll(() => talk(other, 'CLIENT LIST')).toMatch(/ oll=[1-9]/)
  peer.socket.resume()
  peer.write('ECHO end\r\n')
  await peer.until(/end\r\n$/)
  expect(peer.text.slice(before)).toBe(`${bulk(value).repeat(20_000)}${bulk('end')}`)
})

// Otherwise, an eviction whose invalidations make many buffers grow would evict more keys.
test('messages that other clients cause do not make the buffer grow', async () => {
  const { port } = await start()
  const subscriber = await open(port)
  subscriber.write('SUBSCRIBE news\r\n')
  await subscriber.until(/subscribe/)
  const publisher = await open(port)
  const message = 'x'.repeat(5_000)
  // In a transaction, so that clientsCron() cannot run in between. It may double the buffer once a second.
  const text = await talk(
    publisher,
    `MULTI\r\nPUBLISH news ${message}\r\nCLIENT LIST TYPE pubsub\r\nEXEC`,
  )
  expect(text).toContain(` rbs=${smallest} `)
  await subscriber.until(new RegExp(message))
})

test('scripts get replies of every size', async () => {
  const { port } = await start()
  const peer = await open(port)
  for (const length of [1_000, 1_020, 1_024, 1_025, 5_000, 16_384, 20_000]) {
    const value = 'x'.repeat(length)
    const script = `EVAL "return redis.call('get','key')" 0`
    expect(await talk(peer, `SET key ${value}\r\n${script}`)).toBe(`+OK\r\n${bulk(value)}`)
  }
})

test('the buffer keeps its size if resizing is off', async () => {
  const { port } = await start({ 'enable-debug-command': 'yes' })
  const first = await open(port)
  await talk(first, 'DEBUG REPLYBUFFER RESIZING 0')
  expect(await field(await open(port), 'rbs')).toBe(largest)
  await talk(first, `SET key ${'x'.repeat(5_000)}\r\nGET key`)
  expect(await field(first, 'rbs')).toBe(smallest)
})

test('a client can unsubscribe, unwatch and unblock without having subscribed, watched or blocked', async () => {
  const { port } = await start()
  const peer = await open(port)
  const nothing = (kind: string) => `*3\r\n${bulk(kind)}$-1\r\n:0\r\n`
  const named = (kind: string) => `*3\r\n${bulk(kind)}${bulk('a')}:0\r\n`
  for (const kind of ['unsubscribe', 'punsubscribe', 'sunsubscribe']) {
    expect(await talk(peer, kind)).toBe(nothing(kind))
    expect(await talk(peer, `${kind} a`)).toBe(named(kind))
  }
  expect(await talk(peer, 'UNWATCH')).toBe('+OK\r\n')
  expect(await talk(peer, 'MULTI\r\nEXEC')).toBe('+OK\r\n*0\r\n')
  expect(await talk(peer, 'RESET')).toBe('+RESET\r\n')
  for (const name of ['sub', 'psub', 'ssub', 'watch']) expect(await field(peer, name)).toBe(0)
  expect(await talk(peer, 'CLIENT UNBLOCK 1')).toBe(':0\r\n')
  expect(await talk(peer, 'ACL SETUSER default resetchannels &a')).toBe('+OK\r\n')
})

test('subscriptions, watches and blocking keys of a client are counted and released', async () => {
  const { port } = await start()
  const [peer, other] = [await open(port), await open(port)]
  await talk(other, 'HELLO 3')
  await talk(other, 'SUBSCRIBE a b\r\nPSUBSCRIBE a*\r\nSSUBSCRIBE a\r\nWATCH x y z')
  expect(await field(other, 'sub')).toBe(2)
  expect(await field(other, 'psub')).toBe(1)
  expect(await field(other, 'ssub')).toBe(1)
  expect(await field(other, 'watch')).toBe(3)
  expect(await talk(peer, 'PUBLISH a hello\r\nSPUBLISH a hello')).toBe(':2\r\n:1\r\n')
  other.socket.destroy()
  await expect.poll(() => talk(peer, 'PUBSUB NUMSUB a\r\nPUBSUB NUMPAT')).toMatch(/:0\r\n:0\r\n$/)
  const blocked = await open(port)
  blocked.write('BLPOP list 0\r\n')
  await expect.poll(() => talk(peer, 'INFO clients')).toContain('blocked_clients:1')
  await talk(peer, 'RPUSH list value')
  await blocked.until(/value/)
})

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
