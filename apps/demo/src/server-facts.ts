import { readFile } from 'node:fs/promises'
import type { Topology } from '@onetrip/api'
import { parseInfo, type SessionStore } from '@onetrip/session-store'
import { type Static, Type } from 'typebox'
import { Exactly } from './events.ts'

const Count = Type.Integer()

export const Server = Exactly(
  {
    topology: Type.Unsafe<Topology>({ type: 'string', enum: ['single', 'cluster', 'sentinel'] }),
    nodes: Type.Array(Type.String(), {
      description: 'host:port or socket path of each server that holds keys',
    }),
    unavailable: Type.Array(Type.String(), { description: 'Nodes that did not answer' }),
    build: Type.Union([Type.String(), Type.Null()], { description: 'null: not built by Onetrip' }),
    patches: Type.Union([Type.Array(Type.String()), Type.Null()], {
      description: 'Our patches in a build with this name; null: unknown',
    }),
    version: Type.String(),
    ioThreads: Type.Integer({ description: 'Including the main thread' }),
    connectedClients: Count,
    commandsPerSecond: Count,
    totalConnectionsReceived: Count,
    usedMemory: Type.Integer({ description: 'Bytes' }),
    uptimeSeconds: Type.Integer({ description: 'Uptime of the server that started last' }),
  },
  {
    description:
      'State of the Redis server, at most one second old. Cluster: sums over its primaries; build, patches and threads of the first',
    examples: [
      {
        topology: 'single',
        nodes: ['127.0.0.1:6390'],
        unavailable: [],
        build: 'patched-13da68d7236d',
        patches: ['0001 tell which build this is'],
        version: '8.0.6',
        ioThreads: 1,
        connectedClients: 4,
        commandsPerSecond: 12,
        totalConnectionsReceived: 17,
        usedMemory: 1_320_480,
        uptimeSeconds: 90,
      },
    ],
  },
)

type ServerFacts = Static<typeof Server>

const SECTIONS = ['server', 'clients', 'memory', 'stats', 'threads']
const CACHE_MS = 1_000
const SERIES = new URL('../../server-build/patches/', import.meta.url)

/** Reads data about the Redis server with INFO. Calls within one second share a result. Rejects if no server answers. */
export function serverFacts(store: SessionStore, topology: Topology): () => Promise<ServerFacts> {
  let readAt = Number.NEGATIVE_INFINITY
  let facts: Promise<ServerFacts>
  return () => {
    const now = performance.now()
    if (now - readAt >= CACHE_MS) {
      readAt = now
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
    patches: build ? await patchesOf(build) : null,
    version: info.get('redis_version') ?? 'unknown',
    ioThreads: Math.max(1, [...info.keys()].filter((name) => /^io_thread_\d+$/.test(name)).length),
    connectedClients: sum('connected_clients'),
    commandsPerSecond: sum('instantaneous_ops_per_sec'),
    totalConnectionsReceived: sum('total_connections_received'),
    usedMemory: sum('used_memory'),
    uptimeSeconds: Math.min(...values('uptime_in_seconds')),
  }
}

/** Number and title of each patch in a build such as `patched`, or `patched@0005` (up to that patch). */
export async function patchesOf(build: string): Promise<string[] | null> {
  const [name = '', last = '9999'] = build.split('@')
  if (!/^\w+$/.test(name)) return null // no path
  const series = await readFile(new URL(`${name}.series`, SERIES), 'utf8').catch(() => null)
  if (series === null) return null
  const files = series.match(/^\d{4}-.+(?=\.patch$)/gm) ?? []
  return files.map((file) => file.replaceAll('-', ' ')).filter((title) => title.slice(0, 4) <= last)
}
