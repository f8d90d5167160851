import { EventEmitter, once } from 'node:events'

/** A worker as the primary sees it, or the process of a worker: the two ends of Node's IPC. */
type Peer = EventEmitter & Pick<NodeJS.Process, 'send'>

interface Message {
  id: string
  /** Absent in a reply. */
  name?: string
  data?: unknown
}

/** Sends a request. Stays pending if the peer exits before it replies. */
export type Ask = (name: string, data?: unknown) => Promise<unknown>

/** Answers the requests of the peer, by name. An answer must not throw. */
export function requests(peer: Peer, answers: Record<string, (data: unknown) => unknown>): Ask {
  const replies = new EventEmitter()
  let lastId = 0
  // Errors are ignored: the peer has exited.
  const send = (message: Message) => peer.send?.(message, undefined, {}, () => {})
  peer.on('message', async ({ id, name, data }: Message) => {
    if (name === undefined) replies.emit(id, data)
    else send({ id, data: await answers[name]?.(data) })
  })
  return async (name, data) => {
    const id = String(++lastId)
    const reply = once(replies, id)
    send({ id, name, data })
    return (await reply)[0]
  }
}
