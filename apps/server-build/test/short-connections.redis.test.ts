import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  callCounts,
  callsDuring,
  closedAfterRemoval,
  connected,
  freePort,
  openSockets,
  redisCli,
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

describe.runIf(linux && strace)(`system calls of the main thread${hasStrace}`, () => {
  const seven = { accept4: 1, epoll_ctl: 2, recvfrom: 2, sendto: 1, close: 1 }

  test.each<[string, Record<string, string>, Record<string, number>]>([
    ['by default', {}, { ...seven, getpeername: 0, read: 0, write: 0 }],
    ['with I/O threads', { 'io-threads': '2' }, { accept4: 1, epoll_ctl: 0, close: 1 }],
  ])('of a short connection, %s', async (_, config, expected) => {
    const port = await freePort()
    const redis = await redisForThisTest({ port, config: { ...steady, ...config } })
    await shortConnections(port, 50)
    const counts = await callCounts(redis.program.pid, () =>
      shortConnections(port, CONNECTIONS, 10),
    )
    for (const [name, times] of Object.entries(expected)) {
      const share = (counts.get(name) ?? 0) / CONNECTIONS
      expect(Math.abs(share - times), `${name}: ${share}`).toBeLessThan(0.1)
    }
    if (config['io-threads']) return // the main thread also hands over clients
    const others = [...counts].filter(([name]) => !perCycle.includes(name) && !(name in expected))
    const total = others.reduce((sum, [, count]) => sum + count, 0)
    expect(total / CONNECTIONS, JSON.stringify(others)).toBeLessThan(0.5)
  })

  test.each([15, 16, 17, 40])(
    'when %i clients are killed, 16 sockets are closed before the reply, after they were removed from epoll',
    async (count) => {
      const port = await freePort()
      const redis = await redisForThisTest({ port, config: steady })
      const { pid } = redis.program
      const before = await openSockets(pid)
      const calls = await callsDuring(pid, 'epoll_ctl,close,sendto', async () => {
        await Promise.all(Array.from({ length: count }, () => connected(port)))
        expect(await redisCli(redis.socket, 'CLIENT', 'KILL', 'TYPE', 'normal')).toBe(String(count))
        await expect.poll(() => openSockets(pid)).toBe(before)
      })
      const reply = calls.findIndex((call) => call.includes(`":${count}\\r\\n"`))
      const closed = closedAfterRemoval(calls.slice(0, reply))
      expect(closed).toHaveLength(Math.min(count, 16))
      // The client that killed the others leaves later.
      expect(closedAfterRemoval(calls)).toHaveLength(count + 1)
    },
  )
})
