import { publishConnection, publishDisconnection } from '../diagnostics.ts'
import type { Client } from './client.ts'

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
  let isOpen = client.status === 'ready'
  const onConnect = () => {
    isOpen = true
    publishConnection()
  }
  // ioredis emits it for each attempt to connect that failed, too.
  const onClose = () => {
    if (isOpen) publishDisconnection()
    isOpen = false
  }
  const onError = (error: unknown) => {
    shared.lastError = error
  }
  client.on('connect', onConnect).on('close', onClose).on('error', onError)
  const shared: Shared = {
    stores: 0,
    lastError: undefined,
    stop: () => void client.off('connect', onConnect).off('close', onClose).off('error', onError),
  }
  return shared
}
