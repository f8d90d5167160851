import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { relayProgram } from '../src/relay/process.ts'
import { filesIn, temporaryFolder } from '../src/testing/folders.ts'
import {
  clientOf,
  echoing,
  echoServer,
  read,
  readAll,
  relayTo,
  testServer,
} from './support/relay.ts'

describe('the relay forwards', () => {
  test.each(['a port', 'a Unix socket'])('every byte, in order, through %s', async (kind) => {
    const listen = kind === 'a port' ? '127.0.0.1:0' : join(await temporaryFolder(), 'relay.sock')
    const relay = await relayTo(await echoServer(), { listen, roundTrip: '1ms' })
    const clients = await Promise.all([clientOf(relay), clientOf(relay), clientOf(relay)])
    for (const client of clients) {
      const bytes = randomBytes(1_000_000)
      client.write(bytes)
      expect((await read(client, bytes.length)).equals(bytes)).toBe(true)
    }
  })

  test('the end of one side, while the other side continues', async () => {
    const server = await testServer()
    const client = await clientOf(await relayTo(server, { roundTrip: '1ms' }))
    client.end('question')
    const serving = await server.accepted()
    serving.resume()
    await once(serving, 'end')
    serving.end('answer')
    expect(await readAll(client)).toEqual({ text: 'answer', error: undefined })
  })

  test('a reset by the server', async () => {
    const server = await testServer(undefined, 'tcp')
    const client = await clientOf(await relayTo(server, { roundTrip: '1ms' }))
    const serving = await server.accepted()
    serving.write('half')
    expect(String(await read(client, 4))).toBe('half')
    const gone = readAll(client)
    serving.resetAndDestroy()
    expect(await gone).toEqual({ text: '', error: 'ECONNRESET' })
  })
})

describe('delays (checked against lower limits only, because a busy machine adds to them)', () => {
  test('a request takes a round trip, and opening the connection takes another', async () => {
    const relay = await relayTo(await echoServer(), { roundTrip: '60ms' })
    const start = performance.now()
    const client = await clientOf(relay)
    client.write('x')
    await read(client, 1)
    expect(performance.now() - start).toBeGreaterThanOrEqual(120)
    const second = performance.now()
    client.write('x')
    await read(client, 1)
    expect(performance.now() - second).toBeGreaterThanOrEqual(60)
  })

  test('the bandwidth of each direction is shared by its connections', async () => {
    const server = await testServer()
    const relay = await relayTo(server, { bandwidth: '1Mb/s' })
    const clients = [await clientOf(relay), await clientOf(relay)]
    const serving = [await server.accepted(), await server.accepted()]
    const start = performance.now()
    const bytes = 12_500 // 100 ms each
    for (const client of clients) client.write(Buffer.alloc(bytes))
    await Promise.all(serving.map((socket) => read(socket, bytes)))
    expect(performance.now() - start).toBeGreaterThanOrEqual(200)
  })
})

describe('faults', () => {
  test('a cut in the middle of a reply', async () => {
    const { relay, client } = await echoing()
    const answer = await relay.command('cut replies 14')
    expect(answer).toMatchObject({ connections: 1, bytes: 14 })
    const told = relay.event('connection cut')
    client.write('0123456789')
    await read(client, 10)
    client.write('0123456789')
    expect(await readAll(client)).toEqual({ text: '0123', error: 'ECONNRESET' })
    expect(await told).toMatchObject({ withheld: 6 })
    // Later connections are not cut.
    const later = await clientOf(relay)
    later.write(Buffer.alloc(100))
    expect(await read(later, 100)).toHaveLength(100)
  })

  test('a stalled link holds data until it is resumed', async () => {
    const { relay, client } = await echoing()
    await relay.command('stall')
    const order: string[] = []
    const all = read(client, 1).then(() => order.push('reply'))
    client.write('b')
    // The relay answers these commands first, so it has had time to forward the byte.
    for (let count = 0; count < 50; count++) await relay.command('stall')
    order.push('resume')
    await relay.command('resume')
    await all
    expect(order).toEqual(['resume', 'reply'])
  })
})

describe('the program', () => {
  test('SIGTERM ends it and all connections, and removes its socket', async () => {
    const folder = await temporaryFolder()
    const { relay, client } = await echoing({ listen: join(folder, 'relay.sock') })
    const gone = readAll(client)
    expect(await relay.program.stop()).toEqual({ code: 0, signal: null })
    expect((await gone).text).toBe('')
    expect(await filesIn(folder)).toEqual([])
    await expect(relay.command('stall')).rejects.toThrow('has ended')
  })

  test('exits with its parent process', async () => {
    const { address } = await echoServer()
    const args = [relayProgram, '--listen', '127.0.0.1:0', '--to', address]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    child.stdin.end()
    expect(await once(child, 'exit')).toEqual([0, null])
  })
})
