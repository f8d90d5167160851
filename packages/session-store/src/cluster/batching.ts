import type { Cluster } from 'ioredis'
import { publishRoundTrip } from '../diagnostics.ts'
import { collecting, sendTogether, type Waiting } from '../redis/batching.ts'
import type { Sender } from '../redis/sender.ts'
import { connectedTo, partsOf, type SendToNode } from './nodes.ts'

interface Sending {
  /** @throws StoreError `ONETRIP_NOT_SENT` if the cluster is not connected. */
  requireReady(): void
  toNode: SendToNode
}

/**
 * Returns a function `send` that collects the operations of one event-loop turn, and sends one batch to each node. An
 * operation whose nodes are not all connected waits, and joins a later batch.
 */
export function batchingPerNode(
  cluster: Cluster,
  { requireReady, toNode }: Sending,
): Sender['send'] {
  const send = collecting(flush)

  async function flush(waiting: readonly Waiting[]): Promise<void> {
    const batches = new Map<string | undefined, Waiting[]>()
    const ups = new Map<string | undefined, Promise<void> | undefined>()
    const whenUp = (node: string | undefined) => {
      if (!ups.has(node)) ups.set(node, connectedTo(cluster, [node]))
      return ups.get(node)
    }
    for (const one of waiting) {
      try {
        requireReady()
        const parts = partsOf(cluster, one)
        const waits = [...parts.keys()].flatMap((node) => whenUp(node) ?? [])
        if (waits.length > 0) {
          Promise.all(waits)
            .then(() => send(one.list))
            .then(one.resolve, one.reject)
          continue
        }
        for (const [node, part] of parts) {
          const batch = batches.get(node)
          if (batch) batch.push(part)
          else batches.set(node, [part])
        }
      } catch (error) {
        one.reject(error)
      }
    }
    let total = 0
    const sent = [...batches].map(([node, parts]) => {
      const sendBatch: Sender['send'] = ({ commands }) => {
        total += commands.length
        return toNode(node, commands)
      }
      return sendTogether({ send: sendBatch }, parts)
    })
    if (total > 0) publishRoundTrip(total) // to all nodes at the same time
    await Promise.all(sent)
  }

  return send
}
