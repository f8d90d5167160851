import { type ClusterAddress, nodesInShards } from '@onetrip/session-store/cluster'
import type { Registry } from 'prom-client'
import type { RedisLocation } from '../redis-location.ts'
import { redisMetrics } from './redis-info.ts'
import { pollNode, type RedisNode, type RedisNodeOptions } from './redis-node.ts'

type Polling = Pick<RedisNodeOptions, 'intervalSeconds' | 'deadlineMs' | 'log'>

interface RedisPollerOptions extends Polling {
  location: RedisLocation
  registry: Registry
}

type Nodes = Map<string, RedisNode>

/**
 * Polls Redis for its metrics (`pollNode`): the single server, the primary that the sentinels name, or every
 * node of a cluster including replicas and nodes that are down. One process of several workers is enough.
 *
 * @returns Function that stops polling.
 * @throws TypeError if the location is invalid.
 */
export function pollRedis({ location, registry, ...options }: RedisPollerOptions): () => void {
  const nodes = location.cluster
    ? pollCluster(location.cluster, options)
    : pollServer(location, options)
  redisMetrics(registry, () => nodes)
  return () => {
    for (const node of nodes.values()) node.stop()
  }
}

function pollServer(server: RedisLocation, options: Polling): Nodes {
  const name = server.sentinel?.name ?? nameOf(server.url ?? '')
  return new Map([[name, pollNode({ ...options, server, name })]])
}

/** `host:port` or socket path, without user and password. */
function nameOf(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return protocol === 'unix:' ? decodeURIComponent(pathname) : host
}

/** Starts with the configured nodes. With each INFO of the first node that is up, reads the nodes of the cluster. */
function pollCluster(cluster: ClusterAddress, options: Polling): Nodes {
  const nodes: Nodes = new Map()
  const poll = (name: string) => {
    const server = serverOf(cluster, name)
    nodes.set(name, pollNode({ ...options, server, name, onInfo: discover }))
  }

  async function discover(node: RedisNode): Promise<void> {
    if (node !== nodes.values().find(({ info }) => info !== undefined)) return
    const names = namesIn(await node.shards(), Boolean(cluster.tls))
    if (names.size === 0) return
    for (const [name, known] of nodes) {
      if (names.has(name)) continue
      known.stop()
      nodes.delete(name)
    }
    for (const name of names) if (!nodes.has(name)) poll(name)
  }

  for (const name of cluster.nodes) poll(name)
  return nodes
}

function serverOf({ username, password, tls }: ClusterAddress, name: string) {
  const url = new URL(`${tls ? 'rediss' : 'redis'}://${name}`)
  if (password !== undefined) url.password = encodeURIComponent(password)
  if (username !== undefined) url.username = encodeURIComponent(username)
  return { url: url.href, tls: typeof tls === 'object' ? tls : undefined }
}

/** The nodes in a reply to CLUSTER SHARDS, as `host:port`, including nodes that are down. */
function namesIn(shards: unknown, tls: boolean): Set<string> {
  const names = nodesInShards(shards).flatMap((node) => {
    const host = String(node.get('endpoint') || node.get('ip') || '')
    // A TLS proxy in front of a node is announced as `port`, not `tls-port`.
    const port = Number((tls && node.get('tls-port')) || node.get('port') || 0)
    if (host === '' || port === 0) return []
    return `${host.includes(':') ? `[${host}]` : host}:${port}`
  })
  return new Set(names)
}
