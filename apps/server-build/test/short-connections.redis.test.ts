import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { open } from '../faults/peer.ts'
import {
  callCounts,
  callsDuring,
  closingIn,
  connected,
  freePort,
  mainThreadCalls,
  openSockets,
  redisCli,
  threadNamed,
  underStrace,
} from './real-redis.ts'

const linux = process.platform === 'linux'
const strace = spawnSync('strace', ['--version']).status === 0
const hasStrace = strace ? '' : ' (SKIPPED: strace is not installed)'

/** Connects, sends PING, closes after the reply. Returns the reply. */
async function shortConnection(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part
    if (text === '+PONG\r\n') socket.end()
  })
  socket.write('PING\r\n')
  await once(socket, 'close')
  return text
}

async function shortConnections(port: number, total: number, atATime = 20): Promise<void> {
  let begun = 0
  const one = async () => {
    while (begun < total) {
      begun += 1
      expect(await shortConnection(port)).toBe('+PONG\r\n')
    }
  }
  await Promise.all(Array.from({ length: atATime }, one))
}

// Not counted: their number depends on the number of event loop cycles, and so on speed.
const perCycle = ['epoll_wait', 'futex']
// One accept per cycle, so that no accept fails because the queue is empty; few cron jobs. Protected mode
// without a password, the default of Redis, in which stock reads the address of each client.
const steady = {
  'max-new-connections-per-cycle': '1',
  hz: '1',
  'dynamic-hz': 'no',
  'protected-mode': 'yes',
  'io-threads': '1',
}
const CONNECTIONS = 300

/**
 * For each descriptor removed from epoll: the timeouts, in milliseconds, of the main thread's epoll_wait calls
 * before it woke the closing thread.
 */
function waitsUntilWoken(calls: readonly string[]): number[][] {
  const ends: number[][] = []
  let open: number[][] = []
  for (const call of calls) {
    if (call.includes('EPOLL_CTL_DEL')) open.push([])
    const timeout = /^epoll_wait\(.*, (-?\d+)\) += /.exec(call)?.[1]
    if (timeout !== undefined) for (const waits of open) waits.push(Number(timeout))
    if (!call.includes('FUTEX_WAKE')) continue
    ends.push(...open)
    open = []
  }
  return [...ends, ...open]
}

describe.runIf(linux && strace)(`system calls of the main thread${hasStrace}`, () => {
  const six = { accept4: 1, epoll_ctl: 2, recvfrom: 2, sendto: 1 }

  test.each<[string, Record<string, string>, Record<string, number>]>([
    ['by default', {}, { ...six, close: 0, getpeername: 0, read: 0, write: 0 }],
    ['without background closing', { 'close-sockets-in-background': 'no' }, { ...six, close: 1 }],
    ['with I/O threads', { 'io-threads': '2' }, { accept4: 1, epoll_ctl: 0, close: 0 }],
  ])('of a short connection, %s', async (_, config, expected) => {
    const port = await freePort()
    const redis = await redisForThisTest({ port, config: { ...steady, ...config } })
    await shortConnections(port, 50)
    const counts = await callCounts(redis.program.pid, () => shortConnections(port, CONNECTIONS))
    for (const [name, times] of Object.entries(expected)) {
      const share = (counts.get(name) ?? 0) / CONNECTIONS
      expect(Math.abs(share - times), `${name}: ${share}`).toBeLessThan(0.1)
    }
    if (config['io-threads']) return // the main thread also hands over clients
    const others = [...counts].filter(([name]) => !perCycle.includes(name) && !(name in expected))
    const total = others.reduce((sum, [, count]) => sum + count, 0)
    expect(total / CONNECTIONS, JSON.stringify(others)).toBeLessThan(0.5)
  })

  test('a cycle accepts as many connections as previous cycles found', async () => {
    const port = await freePort()
    const redis = await redisForThisTest({ port })
    const counts = await callCounts(redis.program.pid, () => shortConnections(port, 100, 1))
    // At most every fourth accept is followed by one that finds no connection.
    expect(counts.get('accept4') ?? 0).toBeLessThan(150)
  })

  test('a disconnected client wakes the closing thread within 2 ms, not in the same cycle', async () => {
    const port = await freePort()
    const redis = await redisForThisTest({ port, config: steady })
    const calls = await mainThreadCalls(redis.program.pid, 'epoll_ctl,epoll_wait,futex', () =>
      shortConnections(port, 50, 1),
    )
    const ends = waitsUntilWoken(calls)
    expect(ends).toHaveLength(50)
    // A cycle may take longer than 2 ms if other programs use the cores.
    expect(ends.filter((waits) => waits.length > 0).length).toBeGreaterThan(10)
    for (const timeout of ends.flat()) {
      expect(timeout).toBeGreaterThanOrEqual(0)
      expect(timeout).toBeLessThanOrEqual(2)
    }
  })

  test('a killed client wakes the closing thread in the same cycle', async () => {
    const port = await freePort()
    const redis = await redisForThisTest({ port, config: steady })
    await Promise.all(Array.from({ length: 20 }, () => connected(port)))
    const ids = await redisCli(redis.socket, 'CLIENT', 'LIST')
    const killed = [...ids.matchAll(/^id=(\d+) addr=127/gm)].map(([, id = '']) => id)
    expect(killed).toHaveLength(20)
    const control = await open(port)
    const calls = await mainThreadCalls(
      redis.program.pid,
      'epoll_ctl,epoll_wait,futex',
      async () => {
        for (const [index, id] of killed.entries()) {
          control.write(`CLIENT KILL ID ${id}\r\n`)
          await control.until(new RegExp(`^(:1\r\n){${index + 1}}$`))
        }
      },
    )
    control.socket.destroy()
    // No call is needed if the thread is still awake from the previous client.
    const ends = waitsUntilWoken(calls)
    expect(ends.filter((waits) => waits.length === 0).length).toBeGreaterThan(10)
  })

  test('one thread closes, and only after the descriptor was removed from epoll', async () => {
    const port = await freePort()
    const redis = await redisForThisTest({ port, config: steady })
    const before = await openSockets(redis.program.pid)
    const calls = await callsDuring(redis.program.pid, 'epoll_ctl,close', async () => {
      await shortConnections(port, 50, 5)
      await expect.poll(() => openSockets(redis.program.pid)).toBe(before)
    })
    const closer = await threadNamed(redis.program.pid, 'bio_close_sock')
    expect(closingIn(calls, closer)).toEqual({
      closed: 50,
      tooEarly: [],
      threadsWithEpoll: [redis.program.pid],
    })
  })
})

describe.runIf(linux)('sockets', () => {
  test.each(['1', '2'])('are all closed after connections, %s I/O threads', async (threads) => {
    const port = await freePort()
    const redis = await redisForThisTest({ port, config: { 'io-threads': threads } })
    await shortConnections(port, 20)
    const before = await openSockets(redis.program.pid)
    await shortConnections(port, 1_000, 100)
    await expect.poll(() => openSockets(redis.program.pid)).toBe(before)
    expect(await redisCli(redis.socket, 'INFO', 'clients')).toMatch(/^connected_clients:1\r?$/m)
  })

  test.runIf(strace)(`are never more than without background closing${hasStrace}`, async () => {
    const port = await freePort()
    const redis = await redisForThisTest({ port, config: { maxclients: '20' } })
    const { pid } = redis.program
    const own = await openSockets(pid)
    const closer = await threadNamed(pid, 'bio_close_sock')
    // Slows the closing thread down: sockets of killed clients stay open for a while.
    const slowly = ['-e', 'trace=close', '-e', 'inject=close:delay_enter=20000']
    await underStrace([...slowly, '-o', '/dev/null', '-p', String(closer)], async () => {
      for (let round = 0; round < 3; round += 1) {
        for (let client = 0; client < 19; client += 1) {
          await connected(port)
          expect(await openSockets(pid)).toBeLessThanOrEqual(own + 20)
        }
        expect(await redisCli(redis.socket, 'CLIENT', 'KILL', 'TYPE', 'normal')).toBe('19')
      }
    })
    await expect.poll(() => openSockets(pid)).toBe(own)
  })
})
