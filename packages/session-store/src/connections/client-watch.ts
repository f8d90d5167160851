import type { Cluster, Redis } from 'ioredis'
import { publishConnection, publishDisconnection } from '../diagnostics.ts'
import { type Client, isCluster } from './client.ts'

/** What stores need to know of a client. Stores that share a client share this. */
export interface ClientWatch {
  /** The last error that the client emitted. */
  readonly lastError: unknown
  /** Ends it for this store. The listeners go with the last store. */
  release(): void
}

/** Listeners that one store adds for a moment, while it waits for the client to be ready. */
const LISTENERS_PER_STORE = 2

interface Shared {
  stores: number
  lastError: unknown
  stop(): void
}

const watched = new WeakMap<Client, Shared>()

/** Remembers the client's errors, and publishes each connection that it opens and its end, once. */
export function watchClient(client: Client): ClientWatch {
  const shared = watched.get(client) ?? startWatching(client)
  watched.set(client, shared)
  shared.stores++
  // Node warns of a leak where an emitter has more than ten listeners of one event.
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
  const most = client.getMaxListeners()
  if (most > 0) client.setMaxListeners(most + count) // 0: any number
}

function startWatching(client: Client): Shared {
  const shared: Shared = { stores: 0, lastError: undefined, stop: () => {} }
  const onError = (error: unknown) => {
    // That of a cluster only says that no node answered: the nodes' own errors say why.
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

/** Publishes that the connection is opened and lost. Returns what ends that. */
function watchConnection(redis: Redis): () => void {
  let isOpen = redis.status === 'ready'
  const onConnect = () => {
    isOpen = true
    publishConnection()
  }
  // ioredis emits it for each attempt to connect that failed, too.
  const onClose = () => {
    if (isOpen) publishDisconnection()
    isOpen = false
  }
  redis.on('connect', onConnect).on('close', onClose)
  return () => void redis.off('connect', onConnect).off('close', onClose)
}

/** The same for the connections to all nodes, and remembers their errors. */
function watchNodes(cluster: Cluster, shared: Shared): () => void {
  const watched = new Map<Redis, () => void>()
  const onNode = (redis: Redis) => void watched.set(redis, watchConnection(redis))
  const onNodeGone = (redis: Redis) => void watched.delete(redis)
  const onNodeError = (error: Error, node: string) => {
    shared.lastError = new Error(`${node}: ${error.message}`, { cause: error })
  }
  for (const redis of cluster.nodes()) onNode(redis)
  cluster.on('+node', onNode).on('-node', onNodeGone).on('node error', onNodeError)
  return () => {
    cluster.off('+node', onNode).off('-node', onNodeGone).off('node error', onNodeError)
    for (const unwatch of watched.values()) unwatch()
  }
}
