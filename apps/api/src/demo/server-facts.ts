import { parseInfo, type SessionStore } from '@onetrip/session-store'
import type { Topology } from '../redis-location.ts'

/** What the demo page shows of the Redis server, or of the masters of a cluster together. */
export interface ServerFacts {
  topology: Topology
  /** `host:port` of each server that holds keys, or the path of its socket. */
  nodes: string[]
  /** Those of them that did not answer. */
  unavailable: string[]
  /** Of the first server. Such as `patched-ce8d76da85e6`; null if it is not a build of ours. */
  build: string | null
  version: string
  /** Threads of one server that read and write sockets, the main thread included. */
  ioThreads: number
  connectedClients: number
  /** As Redis measures it over the last seconds. */
  commandsPerSecond: number
  totalConnectionsReceived: number
  /** In bytes. */
  usedMemory: number
  /** Of the server that started last. */
  uptimeSeconds: number
}

const SECTIONS = ['server', 'clients', 'memory', 'stats', 'threads']
const SHARED_MS = 1_000

/** Reads them from Redis, at most once a second however many ask. Rejects when no server answers. */
export function serverFacts(store: SessionStore, topology: Topology): () => Promise<ServerFacts> {
  let askedAt = Number.NEGATIVE_INFINITY
  let facts: Promise<ServerFacts>
  return () => {
    const now = performance.now()
    if (now - askedAt >= SHARED_MS) {
      askedAt = now
      facts = readFacts(store, topology)
    }
    return facts
  }
}

async function readFacts(store: SessionStore, topology: Topology): Promise<ServerFacts> {
  const nodes = await store.runOnEach({
    commands: [['INFO', ...SECTIONS]],
    readOnly: true,
    read: ([reply]) => parseInfo(String(reply)),
  })
  const infos = nodes.flatMap(({ result }) => result ?? [])
  const [info] = infos
  if (info === undefined) throw nodes[0]?.error
  const build = info.get('onetrip_build')
  const values = (name: string) => infos.map((info) => Number(info.get(name) ?? 0))
  const sum = (name: string) => values(name).reduce((sum, value) => sum + value, 0)
  return {
    topology,
    nodes: nodes.map(({ node }) => node),
    unavailable: nodes.flatMap(({ node, error }) => (error ? node : [])),
    build: build ? `${build}-${info.get('onetrip_build_key')?.slice(0, 12)}` : null,
    version: info.get('redis_version') ?? 'unknown',
    ioThreads: Math.max(1, [...info.keys()].filter((name) => /^io_thread_\d+$/.test(name)).length),
    connectedClients: sum('connected_clients'),
    commandsPerSecond: sum('instantaneous_ops_per_sec'),
    totalConnectionsReceived: sum('total_connections_received'),
    usedMemory: sum('used_memory'),
    uptimeSeconds: Math.min(...values('uptime_in_seconds')),
  }
}
