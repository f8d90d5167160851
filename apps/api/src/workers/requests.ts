import type { EventEmitter } from 'node:events'

/** A worker as the primary sees it, or the process of a worker: the two ends of Node's IPC. */
type Peer = EventEmitter & Pick<NodeJS.Process, 'send'>

interface Message {
  id: number
  /** Absent in a reply. */
  name?: string
  data?: unknown
}

/** Sends a request. Stays pending if the peer exits before it replies. */
export type Ask = (name: string, data?: unknown) => Promise<unknown>

/** Answers the requests of the peer, by name. An answer must not throw. */
export function requests(peer: Peer, answers: Record<string, (data: unknown) => unknown>): Ask {
  const pending = new Map<number, (data: unknown) => void>()
  let lastId = 0
  const send = (message: Message) =>
    new Promise<void>((resolve, reject) => {
      peer.send?.(message, undefined, {}, (error) => (error ? reject(error) : resolve()))
    })

  peer.on('message', async ({ id, name, data }: Message) => {
    if (name === undefined) {
      pending.get(id)?.(data)
      pending.delete(id)
      return
    }
    const reply = { id, data: await answers[name]?.(data) }
    await send(reply).catch(() => {}) // the peer has exited
  })

  return async (name, data) => {
    const id = ++lastId
    const reply = new Promise((resolve) => void pending.set(id, resolve))
    await send({ id, name, data })
    return await reply
  }
}
