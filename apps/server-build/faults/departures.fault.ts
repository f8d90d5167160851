import { beforeAll, describe, expect, test } from 'vitest'
import { underStrace } from '../test/real-redis.ts'
import { many, open, type Peer } from './peer.ts'
import { serverOf, startServer } from './server.ts'
import { sharedLibrary } from './shared-library.ts'
import { states } from './states.ts'

// Many clients leave in one turn of the event loop: all but 16 are freed later (patch 0005). Commands that are sent
// with CLIENT KILL run in the same turn.

/** So many that they are not freed in one turn. */
const MANY = 500

let program: string
beforeAll(async () => {
  program = await serverOf('patched')
})

/** Sends commands in one write. Returns their replies. */
async function talk(peer: Peer, ...commands: string[]): Promise<string> {
  const before = peer.text.length
  peer.write([...commands, 'ECHO end', ''].join('\r\n'))
  await peer.until(new RegExp(`^[^]{${before}}[^]*\\$3\r\nend\r\n$`))
  return peer.text.slice(before, -'$3\r\nend\r\n'.length)
}

const ended = (peers: readonly Peer[]) =>
  expect(Promise.all(peers.map(({ over }) => over))).resolves.toEqual(peers.map(() => 'end'))

const figure = (info: string, name: string) =>
  Number(new RegExp(`^${name}:(\\d+)\r$`, 'm').exec(info)?.[1])

describe.each(['1', '2'])('with %s I/O threads', (threads) => {
  const start = (config: Record<string, string> = {}) =>
    startServer(program, { 'io-threads': threads, 'enable-debug-command': 'yes', ...config })

  test('clients that have left are gone for every command, and the others are untouched', async () => {
    const server = await start()
    const control = await open(server.port)
    const subscriber = await open(server.port)
    subscriber.write('SUBSCRIBE news\r\n')
    await subscriber.until(/:1\r\n/)
    const before = await server.sockets()
    const plain = await many(MANY, server.port)
    const kinds = ['in a transaction, watching', 'blocked', 'waiting for replicas', 'tracking']
    const others: Peer[] = []
    for (const kind of [...kinds, 'monitoring']) {
      for (let count = 0; count < 20; count += 1) {
        const peer = await states[kind]?.(server.port)
        if (peer) others.push(peer)
      }
    }
    const last = plain.at(-1) as Peer
    const id = (await talk(last, 'CLIENT ID')).trim().slice(1)
    const counts = 'connected_clients:2 blocked_clients:0 tracking_clients:0 watching_clients:0'
    const killed = await talk(
      control,
      'MULTI',
      ...['CLIENT KILL TYPE normal', 'CLIENT KILL TYPE normal', `CLIENT KILL ID ${id}`],
      ...[`CLIENT UNBLOCK ${id}`, 'CLIENT LIST', 'INFO clients', 'EXEC'],
    )
    expect(killed).toContain(`*6\r\n:${plain.length + others.length}\r\n:0\r\n:0\r\n:0\r\n`)
    expect(killed.match(/ cmd=/g)).toHaveLength(2)
    for (const count of counts.split(' ')) expect(killed).toContain(`${count}\r\n`)
    await ended([...plain, ...others])
    await talk(control, 'PUBLISH news still-here')
    await subscriber.until(/still-here/)
    await expect.poll(() => server.sockets()).toBe(before)
  })

  test.each(['noeviction', 'allkeys-random'])(
    'with maxmemory-policy %s, the memory of clients that have left goes first',
    async (policy) => {
      const server = await start({ 'maxmemory-policy': policy, 'maxmemory-clients': '1gb' })
      const control = await open(server.port)
      await talk(control, ...Array.from({ length: 100 }, (_, key) => `SET key:${key} value`))
      const peers = await many(100, server.port)
      const half = `*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n${'x'.repeat(500_000)}`
      for (const peer of peers) peer.write(half)
      const memory = async (name: string) => figure(await talk(control, 'INFO memory'), name)
      await expect.poll(() => memory('mem_clients_normal')).toBeGreaterThan(50_000_000)
      const limit = (await memory('used_memory')) - 40_000_000
      const commands = ['CLIENT KILL TYPE normal', `CONFIG SET maxmemory ${limit}`, 'INFO memory']
      const replies = await talk(control, ...commands, 'SET more 1', 'DBSIZE')
      expect(figure(replies, 'mem_clients_normal')).toBeLessThan(1_000_000)
      expect(replies).toMatch(/\+OK\r\n:101\r\n$/)
      await Promise.all(peers.map(({ over }) => over))
    },
  )

  test.each([
    ['BGSAVE', 'BGSAVE'],
    ['a session of the Lua debugger', 'EVAL "return 1" 0'],
    ["a fork in a module's thread", 'MODULE.FORK'],
    ['a slow shutdown', 'SHUTDOWN SAVE'],
  ])('clients that left before %s see their end while it lasts', async (_name, command) => {
    const server = await start({ loadmodule: await sharedLibrary('module.c') })
    const peers = await many(MANY, server.port)
    const control = await open(server.port)
    await talk(control, 'SET key value', 'CONFIG SET rdb-key-save-delay 60000000')
    const forking = async () =>
      figure(await talk(control, 'INFO persistence'), 'module_fork_in_progress')
    await expect.poll(forking).toBe(0) // the child of the time when the module was loaded has ended
    control.write('SCRIPT DEBUG YES\r\n') // alone: not in a pipeline
    await control.until(/\+OK\r\n$/)
    control.write(`CLIENT KILL TYPE normal\r\n${command}\r\n`)
    await ended(peers)
    // The child, or the shutdown, is still there. A shutdown ends the child.
    if (command === 'MODULE.FORK') await expect.poll(forking).toBe(1)
    if (command.startsWith('EVAL')) await control.until(/Stopped at 1/)
    if (command === 'BGSAVE') {
      expect(await talk(control, 'INFO persistence')).toMatch(/rdb_bgsave_in_progress:1\r/)
    }
    expect(control.socket.closed).toBe(false)
    if (command === 'SHUTDOWN SAVE') server.program.signal('SIGKILL')
  })

  test('modules see the clients leave before CLIENT KILL returns', async () => {
    const server = await start({ loadmodule: await sharedLibrary('module.c') })
    const peers = await many(MANY, server.port)
    const control = await open(server.port)
    for (const [index, peer] of peers.entries()) await talk(peer, `CLIENT SETNAME peer-${index}`)
    expect(await talk(control, 'CLIENT KILL TYPE normal', 'MODULE.LEFT')).toBe(
      `:${MANY}\r\n:${MANY}\r\n`,
    )
    await ended(peers)
    expect(await talk(control, 'MODULE.LEFT')).toBe(`:${MANY}\r\n`)
  })

  test('users that are deleted and idle clients leave, too', async () => {
    const server = await start()
    const control = await open(server.port)
    await talk(control, 'ACL SETUSER guest on nopass +@all', 'CONFIG SET timeout 0')
    const guests = await many(MANY, server.port)
    for (const guest of guests) await talk(guest, 'AUTH guest x')
    expect(await talk(control, 'ACL DELUSER guest', 'INFO clients')).toContain(':1\r\n')
    await ended(guests)
    const idle = await many(MANY, server.port)
    await talk(control, 'CONFIG SET timeout 1')
    await ended(idle)
  })
})

describe('at maxclients, clients are accepted if others have left before', () => {
  const config = { maxclients: '300', 'max-new-connections-per-cycle': '1000' }

  async function expectAccepted(peers: readonly Peer[]) {
    for (const peer of peers) peer.write('PING\r\n')
    await Promise.all(peers.map((peer) => peer.until(/^\+PONG\r\n$/)))
    const [first] = peers as [Peer]
    expect(figure(await talk(first, 'INFO stats'), 'rejected_connections')).toBe(0)
    expect(figure(await talk(first, 'INFO clients'), 'connected_clients')).toBe(peers.length)
  }

  test('in one turn of the event loop', async () => {
    const server = await startServer(program, { ...config, 'io-threads': '1' })
    const idle = await many(300, server.port)
    server.program.signal('SIGSTOP')
    for (const peer of idle) peer.socket.destroy()
    const next = await Promise.all(idle.map(() => open(server.port)))
    server.program.signal('SIGCONT')
    await expectAccepted(next)
  })

  test('and an I/O thread has handed them over', async () => {
    const server = await startServer(program, { ...config, 'io-threads': '2' })
    const idle = await many(300, server.port)
    // The main thread first sees that a client connects, and when it accepts it, the others have left.
    const slowly = ['-e', 'trace=epoll_wait', '-e', 'inject=epoll_wait:delay_exit=1000000']
    const pid = String(server.program.pid)
    await underStrace([...slowly, '-o', '/dev/null', '-p', pid], async () => {
      const next = [await open(server.port)]
      for (const peer of idle) peer.socket.destroy()
      next.push(...(await Promise.all(idle.slice(1).map(() => open(server.port)))))
      await expectAccepted(next)
    })
  })
})
