import { type Reply, roundTripChannel, type Sender } from '@onetrip/session-store'
import { openPool, type Target } from './connections.ts'

/**
 * The usual remedy: shared connections, and one ioredis pipeline for each operation, without MULTI
 * and EXEC. All commands of an operation take one round trip. The store's own sender, `batch`, goes further: one
 * pipeline for the operations of all callers of an event-loop turn.
 */
export function pipeline(target: Target): Sender {
  const pool = openPool(target)
  return {
    name: 'pipeline',
    async send({ commands }) {
      const queued = pool.next().pipeline()
      for (const [name, ...args] of commands) queued.call(name, ...args)
      roundTripChannel.publish({ commands: commands.length })
      const results = (await queued.exec()) ?? []
      return results.map(([error, reply]) => error ?? (reply as Reply))
    },
    connections: pool.connections,
    subscribe: pool.subscribe,
    close: pool.close,
  }
}
