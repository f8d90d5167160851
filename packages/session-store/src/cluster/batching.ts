import type { Cluster } from 'ioredis'
import { publishRoundTrip } from '../core/diagnostics.ts'
import type { Command } from '../core/operation.ts'
import type { Outcome } from '../core/outcomes.ts'
import { collecting, sendTogether, type Waiting } from '../core/sending/batching.ts'
import type { Sender } from '../core/sending/sender.ts'
import { type SendToNode, sendPerNode } from './nodes.ts'

interface Sending {
  /** Waits until all nodes of the commands are connected; undefined if they are. */
  prepare(commands: readonly Command[]): Promise<void> | undefined
  toNode: SendToNode
}

/**
 * Returns a function `send` that collects the operations of one event-loop turn, and sends one batch to each node. An
 * operation whose nodes are not all connected waits, and joins a later batch.
 */
export function batchingPerNode(cluster: Cluster, { prepare, toNode }: Sending): Sender['send'] {
  const send = collecting(flush)

  function flush(waiting: readonly Waiting[]): void {
    const batches = new Map<string | undefined, Waiting[]>()
    for (const one of waiting) {
      try {
        const wait = prepare(one.list.commands)
        if (wait) wait.then(() => send(one.list)).then(one.resolve, one.reject)
        else addTo(batches, one)
      } catch (error) {
        one.reject(error)
      }
    }
    let total = 0
    for (const [node, parts] of batches) {
      const sendBatch: Sender['send'] = ({ commands }) => {
        total += commands.length
        return toNode(node, commands)
      }
      void sendTogether({ send: sendBatch }, parts)
    }
    if (total > 0) publishRoundTrip(total) // to all nodes at the same time
  }

  /** Adds the commands of an operation to the batches of their nodes. */
  function addTo(
    batches: Map<string | undefined, Waiting[]>,
    { list, resolve, reject }: Waiting,
  ): void {
    const collect: SendToNode = (node, commands) => {
      const { promise, ...part } = Promise.withResolvers<readonly Outcome[]>()
      const parts = batches.get(node) ?? []
      batches.set(node, parts)
      parts.push({ list: { ...list, commands }, ...part })
      return promise
    }
    sendPerNode(cluster, list.commands, collect).then(resolve, reject)
  }

  return send
}
