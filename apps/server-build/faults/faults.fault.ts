import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { ask, many } from './peer.ts'
import { type FaultServer, serverOf, startServer } from './server.ts'
import { cut, states } from './states.ts'

let program: string
beforeAll(async () => {
  program = await serverOf('patched')
})

/** Expects that all sockets of clients are closed and the server answers. */
async function expectAllClosed(server: FaultServer, before: number): Promise<void> {
  // This connection is accepted after all earlier ones, so it sees their end.
  const clients = () => ask(server.port, 'INFO clients')
  await expect.poll(clients, { timeout: 30_000 }).toMatch(/^connected_clients:1\r$/m)
  await expect.poll(() => server.sockets(), { timeout: 30_000 }).toBe(before)
  expect(server.lines.join('\n')).not.toMatch(/assert|crashed|Guru/i)
}

describe.each(['1', '2'])('with %s I/O threads', (threads) => {
  const start = (config: Record<string, string> = {}) =>
    startServer(program, { 'io-threads': threads, ...config })

  test.each(Object.keys(states))('cut connection: client %s', async (name) => {
    const server = await start()
    await ask(server.port, `SET large ${'x'.repeat(500_000)}`)
    const before = await server.sockets()
    for (const how of ['reset', 'end', 'both'] as const) {
      for (let round = 0; round < 5; round += 1) {
        const bring = states[name]
        if (!bring) throw new Error(name)
        // Clients that kill each other, or themselves, may be disconnected before they are cut off.
        const peers = await Promise.allSettled(Array.from({ length: 20 }, () => bring(server.port)))
        for (const peer of peers) if (peer.status === 'fulfilled') cut(peer.value, how)
      }
    }
    await expectAllClosed(server, before)
  })

  test.each(['CLIENT KILL', 'FIN', 'RST'])('10,000 connections end at once by %s', async (how) => {
    const server = await start({ maxclients: '10100' })
    const before = await server.sockets()
    const peers = await many(10_000, server.port)
    expect(await ask(server.port, 'INFO clients')).toMatch(/^connected_clients:10001\r$/m)
    if (how === 'CLIENT KILL') {
      expect(await ask(server.port, 'CLIENT KILL TYPE normal')).toBe(':10000\r\n')
      expect(await ask(server.port, 'INFO clients')).toMatch(/^connected_clients:1\r$/m)
    } else {
      for (const peer of peers) cut(peer, how === 'FIN' ? 'end' : 'reset')
    }
    const ends = new Set(await Promise.all(peers.map((peer) => peer.over)))
    if (how !== 'RST') expect(ends).toEqual(new Set(['end']))
    await expectAllClosed(server, before)
  })

  test.each(['SHUTDOWN', 'SIGTERM'])(
    '%s under churn: no acknowledged write is lost',
    async (how) => {
      const config = { appendonly: 'yes', appendfsync: 'always', 'io-threads': threads }
      const server = await startServer(program, config)
      let acknowledged = 0
      let sent = 0
      let over = false
      const client = async () => {
        while (!over) {
          sent += 1
          // A connection that is rejected or reset during the shutdown has no reply.
          const reply = await ask(server.port, 'INCR counter').catch(() => '')
          expect(reply, 'a complete reply or none').toMatch(/^(:\d+\r\n)?$/)
          if (reply) acknowledged += 1
          else await sleep(1)
        }
      }
      const clients = Array.from({ length: 50 }, client)
      await expect.poll(() => acknowledged, { timeout: 60_000 }).toBeGreaterThan(2_000)
      if (how === 'SIGTERM') server.program.signal('SIGTERM')
      else void ask(server.port, 'SHUTDOWN').catch(() => '')
      expect(await server.program.exited).toEqual({ code: 0, signal: null })
      over = true
      await Promise.all(clients)
      const again = await startServer(program, config, { directory: server.directory })
      const kept = Number(/\r\n(\d+)/.exec(await ask(again.port, 'GET counter'))?.[1])
      expect(kept).toBeGreaterThanOrEqual(acknowledged)
      expect(kept).toBeLessThanOrEqual(sent)
    },
  )
})
