import { execFileSync, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { ask, many } from '../faults/peer.ts'
import { startServer } from '../faults/server.ts'
import { sharedLibrary } from '../faults/shared-library.ts'
import {
  connected,
  freePort,
  patchedServer,
  redisCli,
  setsockoptCalls,
  tcpSocket,
  underStrace,
} from './real-redis.ts'

const linux = process.platform === 'linux'
const ipv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)
const strace = spawnSync('strace', ['--version']).status === 0
const hasStrace = strace ? '' : ' (SKIPPED: strace is not installed)'

test('redis-server --version and INFO show the build', async () => {
  const redis = await redisForThisTest()
  const info = await redisCli(redis.socket, 'INFO', 'server')
  const key = /^onetrip_build_key:([0-9a-f]{12})\r?$/m.exec(info)?.[1]
  expect(info).toMatch(/^onetrip_build:patched\r?$/m)
  expect(info).toMatch(new RegExp(`^process_id:${redis.program.pid}\\r?$`, 'm'))
  const server = await patchedServer()
  expect(server).toContain(`patched-${key}`)
  expect(execFileSync(server, ['--version'], { encoding: 'utf8' })).toContain(
    `onetrip=patched-${key}`,
  )
})

describe.runIf(linux)('socket options that accepted connections inherit', () => {
  /** The server's keep-alive for a new connection, in seconds. Rounded up to tens: the timer counts down. */
  async function keepAliveOfNewConnection(port: number, host?: string) {
    const client = await connected(port, host)
    const { keepAlive } = await tcpSocket(port, client.localPort ?? 0)
    return keepAlive && Math.ceil(keepAlive / 10) * 10
  }

  /** The remote port of a replica's connection to its primary. */
  async function portOfReplica(primary: string): Promise<number> {
    const clients = await redisCli(primary, 'CLIENT', 'LIST', 'TYPE', 'replica')
    return Number(/ addr=[^ ]*:(\d+) /.exec(clients)?.[1])
  }

  test('new connections have the configured keep-alive, and CONFIG SET changes it', async () => {
    const port = await freePort()
    const redis = await redisForThisTest({ port })
    expect(await keepAliveOfNewConnection(port)).toBe(300)
    for (const [setting, expected] of [
      ['100', 100],
      ['0', undefined],
      ['50', 50],
    ] as const) {
      await redisCli(redis.socket, 'CONFIG', 'SET', 'tcp-keepalive', setting)
      expect(await keepAliveOfNewConnection(port)).toBe(expected)
    }
    const refused = await redisCli(redis.socket, 'CONFIG', 'SET', 'tcp-keepalive', '32768')
    expect(refused).toContain('The system refuses this keep-alive interval')
    expect(await keepAliveOfNewConnection(port)).toBe(50)
  })

  test('addresses that are bound at run time also have the options', async () => {
    const redis = await redisForThisTest()
    const [first, second] = [await freePort(), await freePort()]
    const set = (...settings: string[]) => redisCli(redis.socket, 'CONFIG', 'SET', ...settings)
    await set('port', String(first))
    expect(await keepAliveOfNewConnection(first)).toBe(300)
    await set('tcp-keepalive', '70', 'port', String(second))
    expect(await keepAliveOfNewConnection(second)).toBe(70)
    if (!ipv6) return
    await set('bind', '127.0.0.1 ::1')
    expect(await keepAliveOfNewConnection(second, '::1')).toBe(70)
    await set('tcp-keepalive', '100')
    expect(await keepAliveOfNewConnection(second, '::1')).toBe(100)
  })

  test('where accepted sockets inherit nothing, a setting sets the options on each', async () => {
    const preload = { LD_PRELOAD: await sharedLibrary('plain-accept.c') }
    const server = await startServer(await patchedServer(), {}, { env: preload })
    expect(await keepAliveOfNewConnection(server.port)).toBe(undefined)
    await ask(server.port, 'CONFIG SET inherit-socket-options no')
    expect(await keepAliveOfNewConnection(server.port)).toBe(300)
  })

  test.runIf(strace)(`a port never listens without its options${hasStrace}`, async () => {
    const port = await freePort()
    const redis = await redisForThisTest()
    const slowly = ['-e', 'trace=setsockopt', '-e', 'inject=setsockopt:delay_enter=200000']
    const pid = String(redis.program.pid)
    await underStrace([...slowly, '-o', '/dev/null', '-p', pid], async () => {
      const set = redisCli(redis.socket, 'CONFIG', 'SET', 'port', String(port))
      // Waits for the first successful connection; before, the port is closed.
      let keepAlive: number | undefined
      const isOpen = async () => {
        keepAlive = await keepAliveOfNewConnection(port)
        return true
      }
      await expect.poll(() => isOpen().catch(() => false), { interval: 1 }).toBe(true)
      expect(keepAlive).toBeGreaterThan(290)
      await set
    })
  })

  test("a replica's own connection to its primary has the replica's keep-alive", async () => {
    const port = await freePort()
    const primary = await redisForThisTest({ port, config: { 'repl-diskless-sync': 'no' } })
    // Without a log: Redis does not stop while it writes the first log after a sync.
    const replica = await redisForThisTest({ config: { 'tcp-keepalive': '123', appendonly: 'no' } })
    await redisCli(replica.socket, 'REPLICAOF', '127.0.0.1', String(port))
    const status = () => redisCli(replica.socket, 'INFO', 'replication')
    await expect.poll(status).toContain('master_link_status:up')
    const ownPort = await portOfReplica(primary.socket)
    // The timer counts down between two pings of the primary, which are ten seconds apart.
    const { keepAlive } = await tcpSocket(ownPort, port)
    expect(keepAlive).toBeGreaterThan(110)
    expect(keepAlive).toBeLessThanOrEqual(123)
  })

  test.runIf(strace)(
    `a listener gets each option once, accepting sets none${hasStrace}`,
    async () => {
      const port = await freePort()
      const redis = await redisForThisTest({ port })
      const accepting = await setsockoptCalls(redis.program.pid, async () => {
        for (let clients = 0; clients < 20; clients += 1) (await connected(port)).destroy()
        await redisCli(redis.socket, 'PING') // over the Unix socket
      })
      expect(accepting).toEqual([])
      const calls = await setsockoptCalls(redis.program.pid, () =>
        redisCli(redis.socket, 'CONFIG', 'SET', 'tcp-keepalive', '100'),
      )
      const options = calls.map((call) => /setsockopt\(\d+, (.*), 4\)/.exec(call)?.[1])
      expect(options).toEqual([
        'SOL_TCP, TCP_NODELAY, [1]',
        'SOL_SOCKET, SO_KEEPALIVE, [1]',
        'SOL_TCP, TCP_KEEPIDLE, [100]',
        'SOL_TCP, TCP_KEEPINTVL, [33]',
        'SOL_TCP, TCP_KEEPCNT, [3]',
      ])
    },
  )
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
