import type { Cluster, Redis } from 'ioredis'
import { type ClientWatch, watchConnection } from '../redis/client-watch.ts'

/** Returns a function that watches clients. Stores that share a client share its watch, until the last one stops. */
function sharedWatches<Client extends object, Options>(
  start: (client: Client, options: Options) => ClientWatch,
): (client: Client, options: Options) => ClientWatch {
  const watched = new WeakMap<Client, { watch: ClientWatch; stores: number }>()
  return (client, options) => {
    const shared = watched.get(client) ?? { watch: start(client, options), stores: 0 }
    watched.set(client, shared)
    shared.stores++
    let stopped = false
    return {
      get isReady() {
        return shared.watch.isReady
      },
      get lastError() {
        return shared.watch.lastError
      },
      stop() {
        if (stopped) return
        stopped = true
        if (--shared.stores > 0) return
        shared.watch.stop()
        watched.delete(client)
      },
    }
  }
}

/**
 * Does what `watchClient` does, for the connections to all nodes. If several stores share the client, the options of
 * the first one apply.
 */
export const watchCluster = sharedWatches(
  (cluster: Cluster, stalledAfterMs: number): ClientWatch => {
    let lastError: unknown
    const unwatchByNode = new Map<Redis, () => void>()
    const onNode = (redis: Redis) =>
      void unwatchByNode.set(redis, watchConnection(redis, stalledAfterMs))
    const onNodeGone = (redis: Redis) => void unwatchByNode.delete(redis)
    const onNodeError = (error: Error, node: string) => {
      lastError = new Error(`${node}: ${error.message}`, { cause: error })
    }
    // It only says that no node replied. The errors of the nodes say why.
    const onError = (error: Error) => {
      lastError ??= error
    }
    for (const redis of cluster.nodes()) onNode(redis)
    cluster.on('+node', onNode).on('-node', onNodeGone)
    cluster.on('node error', onNodeError).on('error', onError)
    return {
      get isReady() {
        return cluster.status === 'ready'
      },
      get lastError() {
        return lastError
      },
      stop() {
        cluster.off('+node', onNode).off('-node', onNodeGone)
        cluster.off('node error', onNodeError).off('error', onError)
        for (const unwatch of unwatchByNode.values()) unwatch()
      },
    }
  },
)
