import { setTimeout as sleep } from 'node:timers/promises'
import { ask, open } from './peer.ts'
import { cut, states } from './states.ts'

export interface Stress {
  /** Connections that got all their replies and then the end. */
  complete: number
  /** Connections that were cut, in every state in turn. */
  cut: number
}

// A client that kills all others would also kill the well-behaved clients.
const cutStates = Object.entries(states).filter(([name]) => name !== 'killing itself')
const ways = ['reset', 'end', 'both'] as const

const GUESTS = 30

/** Commands of an administrator during the churn. */
const administration = [
  'BGSAVE',
  'CLIENT LIST',
  'BGREWRITEAOF',
  'INFO everything',
  'CLIENT KILL TYPE pubsub',
  'CLIENT KILL USER guest',
  'CONFIG SET maxmemory-clients 1gb',
  'CONFIG SET maxclients 150',
  'CLIENT NO-EVICT on',
  'CONFIG SET maxmemory-clients 0',
  'CLIENT KILL USER guest',
  'CONFIG SET maxclients 300',
  'CONFIG RESETSTAT',
  'MEMORY STATS',
]

/**
 * Runs clients that connect and disconnect in all ways concurrently.
 *
 * @throws if a well-behaved client did not get all its replies.
 */
export async function stress(port: number, seconds: number): Promise<Stress> {
  const until = performance.now() + seconds * 1_000
  const hasTime = () => performance.now() < until
  const done: Stress = { complete: 0, cut: 0 }
  await ask(port, `SET large ${'x'.repeat(200_000)}`)
  await ask(port, 'ACL SETUSER guest on nopass allchannels +@all')

  const wellBehaved = async (worker: number) => {
    for (let turn = 0; hasTime(); turn += 1) {
      const commands = 1 + ((worker + turn) % 20)
      const text = await ask(port, 'INCR counter\r\n'.repeat(commands).trimEnd())
      if (text.match(/^:\d+\r$/gm)?.length !== commands) {
        throw new Error(`${commands} commands got the replies ${JSON.stringify(text)}`)
      }
      done.complete += 1
    }
  }
  const abrupt = async (worker: number) => {
    for (let turn = worker; hasTime(); turn += 1) {
      const [, bring] = cutStates[turn % cutStates.length] ?? []
      // A client that is killed meanwhile does not reach its state.
      const peer = await bring?.(port).catch(() => undefined)
      if (!peer) continue
      cut(peer, ways[turn % ways.length] ?? 'reset')
      done.cut += 1
      await peer.over
    }
  }
  // Enough of them leave at the same time to be freed later: when they are killed, or here.
  const guests = async (state: string) => {
    while (hasTime()) {
      const peers = await Promise.all(Array.from({ length: GUESTS }, () => open(port)))
      for (const peer of peers) peer.write(`AUTH guest x\r\n${state}\r\n`)
      await Promise.race([Promise.all(peers.map((peer) => peer.over)), sleep(1_000)])
      for (const peer of peers) peer.socket.destroy()
    }
  }
  const administrator = async () => {
    const peer = await open(port)
    peer.socket.on('data', () => {})
    for (let turn = 0; hasTime(); turn += 1) {
      peer.write(`${administration[turn % administration.length]}\r\n`)
      await sleep(50)
    }
    peer.socket.destroy()
  }
  const workers = Array.from({ length: 10 }, (_, worker) => worker)
  const others = [guests('SUBSCRIBE news'), guests('PING'), administrator()]
  await Promise.all([...workers.map(wellBehaved), ...workers.map(abrupt), ...others])
  return done
}
