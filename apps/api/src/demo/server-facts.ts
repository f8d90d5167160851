import { parseInfo, type SessionStore } from '@onetrip/session-store'

/** What the demo page shows of the Redis server. */
export interface ServerFacts {
  /** Such as `patched-ce8d76da85e6`; null if it is not a build of ours. */
  build: string | null
  version: string
  /** Threads that read and write sockets, the main thread included. */
  ioThreads: number
  connectedClients: number
  /** As Redis measures it over the last seconds. */
  commandsPerSecond: number
  totalConnectionsReceived: number
  /** In bytes. */
  usedMemory: number
  uptimeSeconds: number
}

const SECTIONS = ['server', 'clients', 'memory', 'stats', 'threads']
const SHARED_MS = 1_000

/** Reads them from Redis, at most once a second however many ask. Rejects as `store.run`. */
export function serverFacts(store: SessionStore): () => Promise<ServerFacts> {
  let askedAt = Number.NEGATIVE_INFINITY
  let facts: Promise<ServerFacts>
  return () => {
    const now = performance.now()
    if (now - askedAt >= SHARED_MS) {
      askedAt = now
      facts = store.run({
        commands: [['INFO', ...SECTIONS]],
        readOnly: true,
        read: ([reply]) => factsOf(parseInfo(String(reply))),
      })
    }
    return facts
  }
}

function factsOf(info: ReadonlyMap<string, string>): ServerFacts {
  const build = info.get('onetrip_build')
  const number = (name: string) => Number(info.get(name) ?? 0)
  return {
    build: build ? `${build}-${info.get('onetrip_build_key')?.slice(0, 12)}` : null,
    version: info.get('redis_version') ?? 'unknown',
    ioThreads: Math.max(1, [...info.keys()].filter((name) => /^io_thread_\d+$/.test(name)).length),
    connectedClients: number('connected_clients'),
    commandsPerSecond: number('instantaneous_ops_per_sec'),
    totalConnectionsReceived: number('total_connections_received'),
    usedMemory: number('used_memory'),
    uptimeSeconds: number('uptime_in_seconds'),
  }
}
