import { execFileSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { threadNamed, underStrace } from '../test/real-redis.ts'
import { ask, many, open, type Peer } from './peer.ts'
import { type FaultServer, serverOf, startServer } from './server.ts'
import { cut, states } from './states.ts'

const SETTING = 'close-sockets-in-background'
/** If a turn of the event loop frees fewer clients, the main thread closes their sockets. */
const FOR_THE_THREAD = 16
const closedSockets = (stats: string) =>
  Number(/^background_closed_sockets:(\d+)\r$/m.exec(stats)?.[1])

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

/** The number of open descriptors, without temporary ones such as those of the cron, which reads /proc. */
async function minDescriptors(pid: number): Promise<number> {
  const counts: number[] = []
  while (counts.length < 10) {
    counts.push((await readdir(`/proc/${pid}/fd`)).length)
    await sleep(5)
  }
  return Math.min(...counts)
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

  test('at the limit of descriptors, closed ones can be used for new clients', async () => {
    const server = await start({ maxclients: '1000' })
    const before = await server.sockets()
    const [control] = (await many(1, server.port)) as [Peer]
    const room = 60
    const { pid } = server.program
    // One more, because accept4 needs a free descriptor even if no connection waits.
    const limit = (await minDescriptors(pid)) + room + 1
    execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}:`])
    const closer = await threadNamed(pid, 'bio_close_sock')
    const slowly = ['-e', 'trace=close', '-e', 'inject=close:delay_enter=20000']
    await underStrace([...slowly, '-o', '/dev/null', '-p', String(closer)], async () => {
      const killed: Peer[] = []
      for (let round = 0; round < 3; round += 1) {
        killed.push(...(await many(room, server.port)))
        // All but one are in use, and will be in the closing queue when the next clients connect.
        control.write('CLIENT KILL TYPE normal\r\n')
        await control.until(new RegExp(`^\\+PONG\r\n(:${room}\r\n){${round + 1}}$`))
      }
      await Promise.all(killed.map((peer) => peer.over))
    })
    expect(server.lines.filter((line) => line.includes('Too many open files'))).toEqual([])
    // Beyond the limit, clients wait in the backlog, as without the patch.
    const peers = await many(room + 1, server.port)
    // Several, because an inherited descriptor may be above the limit and not count.
    const waiting = await Promise.all(Array.from({ length: 5 }, () => open(server.port)))
    for (const peer of waiting) peer.write('PING\r\n')
    await expect.poll(() => server.lines.join('\n')).toContain('Too many open files')
    for (const peer of peers) peer.socket.end()
    for (const peer of waiting) {
      await peer.until(/PONG/)
      peer.socket.end()
    }
    control.socket.end()
    await expectAllClosed(server, before)
  })

  test('accept is retried if descriptors became free after it failed', async () => {
    const server = await start({ maxclients: '1000', 'max-new-connections-per-cycle': '1' })
    const [control] = (await many(1, server.port)) as [Peer]
    const { pid } = server.program
    const closer = await threadNamed(pid, 'bio_close_sock')
    const last = await many(FOR_THE_THREAD, server.port)
    const descriptors = new Set(await readdir(`/proc/${pid}/fd`))
    let limit = 0
    while (descriptors.has(String(limit))) limit += 1
    execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}:`])
    // When accept4 fails in the kernel, the thread has not closed yet; when accept4 returns, it has closed all.
    const slowly = ['close:delay_enter=50000', 'accept4:delay_exit=1500000']
    const inject = slowly.flatMap((what) => ['-e', `inject=${what}`])
    const threads = [pid, closer].flatMap((tid) => ['-p', String(tid)])
    const traced = ['-e', 'trace=close,accept4', ...inject, '-o', '/dev/null', ...threads]
    await underStrace(traced, async () => {
      control.write('CLIENT KILL TYPE normal\r\n')
      await control.until(new RegExp(`:${FOR_THE_THREAD}\r\n`))
      const next = await open(server.port)
      next.write('PING\r\n')
      await next.until(/PONG/)
      await Promise.all(last.map((peer) => peer.over))
    })
    expect(server.lines.filter((line) => line.includes('Too many open files'))).toEqual([])
  })

  test('latest_fork_usec includes the wait for closing sockets', async () => {
    const server = await start()
    const [control] = (await many(1, server.port)) as [Peer]
    const peers = await many(FOR_THE_THREAD, server.port)
    const closer = await threadNamed(server.program.pid, 'bio_close_sock')
    const slowly = ['-e', 'trace=close', '-e', 'inject=close:delay_enter=20000']
    await underStrace([...slowly, '-o', '/dev/null', '-p', String(closer)], async () => {
      control.write('CLIENT KILL TYPE normal\r\n')
      await control.until(new RegExp(`:${FOR_THE_THREAD}\r\n`))
      control.write('BGSAVE\r\n')
      await control.until(/Background saving started/)
      await Promise.all(peers.map((peer) => peer.over))
    })
    const stats = await ask(server.port, 'INFO stats')
    expect(closedSockets(stats)).toBe(FOR_THE_THREAD)
    expect(stats).toMatch(/^background_close_drains:1\r$/m)
    expect(Number(/^latest_fork_usec:(\d+)/m.exec(stats)?.[1])).toBeGreaterThan(200_000)
  })

  test.each([
    ['one core', ['taskset', '-c', '0'], {}, false],
    ['one core, setting is yes', ['taskset', '-c', '0'], { [SETTING]: 'yes' }, true],
    ['all cores, setting is no', [], { [SETTING]: 'no' }, false],
    ['all cores', [], {}, availableParallelism() > 1],
  ])('closing in the background: %s', async (_name, wrapper, config, isUsed) => {
    const server = await startServer(program, { 'io-threads': threads, ...config }, { wrapper })
    await many(FOR_THE_THREAD, server.port)
    await ask(server.port, 'CLIENT KILL TYPE normal')
    const stats = await ask(server.port, 'INFO stats')
    // The client that killed the others may leave in the same turn.
    expect(closedSockets(stats) >= FOR_THE_THREAD).toBe(isUsed)
  })

  test.each(['ECONNABORTED', 'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EINTR', 'EPERM'])(
    'every third accept fails with %s',
    async (error) => {
      const server = await start()
      const before = await server.sockets()
      const failing = ['-e', 'trace=accept4', '-e', `inject=accept4:error=${error}:when=1+3`]
      await underStrace(
        [...failing, '-o', '/dev/null', '-p', String(server.program.pid)],
        async () => {
          for (let round = 0; round < 5; round += 1) {
            const peers = await many(50, server.port)
            for (const [index, peer] of peers.entries()) cut(peer, index % 2 ? 'end' : 'reset')
          }
        },
      )
      await expectAllClosed(server, before)
    },
  )

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
