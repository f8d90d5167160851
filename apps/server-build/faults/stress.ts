import { setTimeout as sleep } from 'node:timers/promises'
import { ask, open } from './peer.ts'
import { cut, states } from './states.ts'

export interface Stress {
  /** Conversations that got all their replies and then their end. */
  whole: number
  /** Connections that were cut off, in every state in turn. */
  cut: number
}

// One that kills all others would take the replies of those who ask properly.
const cutStates = Object.entries(states).filter(([name]) => name !== 'killing itself')
const ways = ['reset', 'end', 'both'] as const

/** What goes on beside the clients that come and go. Errors, as stock's for our setting, do not matter. */
const administration = [
  'BGSAVE',
  'CLIENT LIST',
  'BGREWRITEAOF',
  'INFO everything',
  'CLIENT KILL TYPE pubsub',
  'CONFIG SET close-sockets-in-background no',
  'CONFIG SET maxclients 150',
  'CLIENT NO-EVICT on',
  'CONFIG SET close-sockets-in-background yes',
  'CONFIG SET maxclients 300',
  'CONFIG RESETSTAT',
  'MEMORY STATS',
]

/**
 * Lets clients come and go in all ways at once, for some seconds.
 *
 * @throws when one that asked properly got less than all its replies.
 */
export async function stress(port: number, seconds: number): Promise<Stress> {
  const until = performance.now() + seconds * 1_000
  const goOn = () => performance.now() < until
  const done: Stress = { whole: 0, cut: 0 }
  await ask(port, `SET large ${'x'.repeat(200_000)}`)

  const polite = async (worker: number) => {
    for (let turn = 0; goOn(); turn += 1) {
      const commands = 1 + ((worker + turn) % 20)
      const text = await ask(port, 'INCR counter\r\n'.repeat(commands).trimEnd())
      if (text.match(/^:\d+\r$/gm)?.length !== commands) {
        throw new Error(`${commands} commands had the replies ${JSON.stringify(text)}`)
      }
      done.whole += 1
    }
  }
  const rude = async (worker: number) => {
    for (let turn = worker; goOn(); turn += 1) {
      const [, bring] = cutStates[turn % cutStates.length] ?? []
      // One that was killed meanwhile does not get into its state.
      const peer = await bring?.(port).catch(() => undefined)
      if (!peer) continue
      cut(peer, ways[turn % ways.length] ?? 'reset')
      done.cut += 1
      await peer.over
    }
  }
  const administrator = async () => {
    const peer = await open(port)
    peer.socket.on('data', () => {})
    for (let turn = 0; goOn(); turn += 1) {
      peer.write(`${administration[turn % administration.length]}\r\n`)
      await sleep(50)
    }
    peer.socket.destroy()
  }
  const workers = Array.from({ length: 10 }, (_, worker) => worker)
  await Promise.all([...workers.map(polite), ...workers.map(rude), administrator()])
  return done
}
