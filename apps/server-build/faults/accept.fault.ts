import { readFile } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { connected, mainThreadCalls } from '../test/real-redis.ts'
import { open } from './peer.ts'
import { type FaultServer, serverOf, startServer } from './server.ts'

let program: string
beforeAll(async () => {
  program = await serverOf('patched')
})

/** How many connections each turn of the event loop accepts while `work` runs, without turns that accept none. */
async function acceptsPerTurn(pid: number, work: () => Promise<unknown>): Promise<number[]> {
  const turns = [0]
  for (const call of await mainThreadCalls(pid, 'accept4,epoll_wait', work)) {
    if (call.startsWith('epoll_wait(')) turns.push(0)
    if (/^accept4\(.* = \d+$/.test(call)) turns.push((turns.pop() ?? 0) + 1)
  }
  return turns.filter((accepts) => accepts > 0)
}

/** Lets clients connect to 127.0.0.1 while the server is stopped, so that all wait when it goes on. */
async function burst({ program, port }: FaultServer, clients: number): Promise<number[]> {
  program.signal('SIGSTOP')
  const status = () => readFile(`/proc/${program.pid}/status`, 'utf8')
  await expect.poll(status).toMatch(/^State:\tT/m)
  const peers = await Promise.all(Array.from({ length: clients }, () => open(port)))
  for (const peer of peers) peer.write('PING\r\n')
  return await acceptsPerTurn(program.pid, async () => {
    program.signal('SIGCONT')
    await Promise.all(peers.map((peer) => peer.until(/PONG/)))
  })
}

test.each(['1', '2'])(
  'a lone client of one address does not slow down accepting at another, %s I/O threads',
  async (threads) => {
    const server = await startServer(program, {
      bind: '127.0.0.1 127.0.0.2',
      'max-new-connections-per-cycle': '1000',
      'io-threads': threads,
    })
    const found = (await burst(server, 100)).at(-1) ?? 0
    expect(found).toBeGreaterThan(10)
    const { pid } = server.program
    expect(await acceptsPerTurn(pid, () => connected(server.port, '127.0.0.2'))).toEqual([1])
    // The next turn expects as many as the last one at this address has found.
    expect(await burst(server, found)).toEqual([found])
  },
)
