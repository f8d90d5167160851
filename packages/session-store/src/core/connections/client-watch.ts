import { EventEmitter, once } from 'node:events'
import type { Cluster, Redis } from 'ioredis'
import { publishConnection, publishDisconnection } from '../diagnostics.ts'
import { type Client, isCluster } from './client.ts'
import { checkDatabase, type DatabaseCheck } from './database.ts'
import { limitHandshake } from './handshake.ts'

/** Observes a client for one store. Stores that share a client share its listeners. */
export interface ClientWatch {
  /** Whether the client is connected, and in its database. */
  readonly isReady: boolean
  /** Why the client is not ready: Redis refused its database, or the last error that the client emitted. */
  readonly lastError: unknown
  /** Resolves when `isReady` may have changed. @throws Error if the signal is aborted. */
  changed(signal: AbortSignal): Promise<void>
  /** Stops observing for this store. The last store removes the listeners. */
  release(): void
}

interface WatchOptions {
  /** A connection that has not replied for so long during its handshake is closed. */
  stalledAfterMs: number
  /** Whether this package created the client. Its own clients close a connection whose database is refused. */
  isOwn: boolean
}

interface Shared {
  stores: number
  lastError: unknown
  /** Of an injected client that is no cluster. */
  database?: DatabaseCheck
  /** Own listeners: Node warns of a leak if the client has more than ten for one event. */
  readonly changes: EventEmitter
  stop(): void
}

const watched = new WeakMap<Client, Shared>()

/**
 * Stores the client's last error, publishes once when a connection opens and when it ends, limits the handshakes, and
 * checks the database. If several stores share the client, the options of the first one apply.
 */
export function watchClient(client: Client, options: WatchOptions): ClientWatch {
  const shared = watched.get(client) ?? startWatching(client, options)
  watched.set(client, shared)
  shared.stores++
  let released = false
  return {
    get isReady() {
      return client.status === 'ready' && shared.database?.isSelected !== false
    },
    get lastError() {
      return shared.database?.refusal ?? shared.lastError
    },
    async changed(signal) {
      await once(shared.changes, 'change', { signal })
    },
    release() {
      if (released) return
      released = true
      if (--shared.stores > 0) return
      shared.stop()
      watched.delete(client)
    },
  }
}

function startWatching(client: Client, { stalledAfterMs, isOwn }: WatchOptions): Shared {
  const changes = new EventEmitter().setMaxListeners(0)
  const shared: Shared = { stores: 0, lastError: undefined, changes, stop: () => {} }
  const onChange = () => void changes.emit('change')
  if (!isOwn && !isCluster(client)) {
    shared.database = checkDatabase(client, stalledAfterMs, onChange)
    if (client.status === 'ready') shared.database.start()
  }
  const onReady = () => {
    shared.database?.start()
    onChange()
  }
  const onClose = () => {
    shared.database?.stop()
    onChange()
  }
  const onError = (error: Error) => {
    // A cluster's own error only says that no node replied; the errors of its nodes say why. After a connection has
    // closed, ioredis also emits errors for the commands of its handshake.
    const saysWhy = !isCluster(client) && client.status !== 'reconnecting'
    if (saysWhy || shared.lastError === undefined) shared.lastError = error
  }
  client.on('ready', onReady).on('close', onClose).on('error', onError)
  const unwatch = isCluster(client)
    ? watchNodes(client, shared, stalledAfterMs)
    : watchConnection(client, stalledAfterMs)
  shared.stop = () => {
    client.off('ready', onReady).off('close', onClose).off('error', onError)
    shared.database?.stop()
    unwatch()
  }
  return shared
}

/** Publishes when the connection opens and when it ends, and limits its handshake. Returns a function that stops this. */
function watchConnection(redis: Redis, stalledAfterMs: number): () => void {
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
  const unlimit = limitHandshake(redis, stalledAfterMs)
  return () => {
    redis.off('connect', onConnect).off('close', onClose)
    unlimit()
  }
}

/** Does the same for the connections to all nodes, and stores their last error. */
function watchNodes(cluster: Cluster, shared: Shared, stalledAfterMs: number): () => void {
  const unwatchByNode = new Map<Redis, () => void>()
  const onNode = (redis: Redis) =>
    void unwatchByNode.set(redis, watchConnection(redis, stalledAfterMs))
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
