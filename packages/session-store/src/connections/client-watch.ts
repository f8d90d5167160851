import type { Cluster, Redis } from 'ioredis'
import { publishConnection, publishDisconnection } from '../diagnostics.ts'
import { type Client, isCluster } from './client.ts'

/** Observes a client for one store. Stores that share a client share its listeners. */
export interface ClientWatch {
  /** The last error that the client emitted. */
  readonly lastError: unknown
  /** Stops observing for this store. The last store removes the listeners. */
  release(): void
}

/** Listeners that a store adds temporarily, while it waits for the client to be ready. */
const LISTENERS_PER_STORE = 2

interface Shared {
  stores: number
  lastError: unknown
  stop(): void
}

const watched = new WeakMap<Client, Shared>()

/** Stores the client's last error, and publishes once when a connection opens and when it ends. */
export function watchClient(client: Client): ClientWatch {
  const shared = watched.get(client) ?? startWatching(client)
  watched.set(client, shared)
  shared.stores++
  // Node warns of a leak if an emitter has more than ten listeners for one event.
  addMaxListeners(client, LISTENERS_PER_STORE)
  let released = false
  return {
    get lastError() {
      return shared.lastError
    },
    release() {
      if (released) return
      released = true
      addMaxListeners(client, -LISTENERS_PER_STORE)
      if (--shared.stores > 0) return
      shared.stop()
      watched.delete(client)
    },
  }
}

function addMaxListeners(client: Client, count: number): void {
  const max = client.getMaxListeners()
  if (max > 0) client.setMaxListeners(max + count) // 0 means unlimited
}

function startWatching(client: Client): Shared {
  const shared: Shared = { stores: 0, lastError: undefined, stop: () => {} }
  const onError = (error: unknown) => {
    // A cluster's own error only says that no node replied; the errors of its nodes say why.
    if (!isCluster(client) || shared.lastError === undefined) shared.lastError = error
  }
  client.on('error', onError)
  const unwatch = isCluster(client) ? watchNodes(client, shared) : watchConnection(client)
  shared.stop = () => {
    client.off('error', onError)
    unwatch()
  }
  return shared
}

/** Publishes when the connection opens and when it ends. Returns a function that stops this. */
function watchConnection(redis: Redis): () => void {
  let isOpen = redis.status === 'ready'
  const onConnect = () => {
    isOpen = true
    publishConnection()
  }
  // ioredis also emits 'close' for each failed attempt to connect.
  const onClose = () => {
    if (isOpen) publishDisconnection()
    isOpen = false
  }
  redis.on('connect', onConnect).on('close', onClose)
  return () => void redis.off('connect', onConnect).off('close', onClose)
}

/** Does the same for the connections to all nodes, and stores their last error. */
function watchNodes(cluster: Cluster, shared: Shared): () => void {
  const unwatchByNode = new Map<Redis, () => void>()
  const onNode = (redis: Redis) => void unwatchByNode.set(redis, watchConnection(redis))
  const onNodeGone = (redis: Redis) => void unwatchByNode.delete(redis)
  const onNodeError = (error: Error, node: string) => {
    shared.lastError = new Error(`${node}: ${error.message}`, { cause: error })
  }
  for (const redis of cluster.nodes()) onNode(redis)
  cluster.on('+node', onNode).on('-node', onNodeGone).on('node error', onNodeError)
  return () => {
    cluster.off('+node', onNode).off('-node', onNodeGone).off('node error', onNodeError)
    for (const unwatch of unwatchByNode.values()) unwatch()
  }
}
