import type { ClusterAddress } from '@onetrip/session-store/cluster'
import type { Registry } from 'prom-client'
import type { RedisLocation } from '../redis-location.ts'
import { redisMetrics } from './redis-info.ts'
import { pollNode, type RedisNode, type RedisNodeOptions } from './redis-node.ts'

interface RedisPollerOptions
  extends Pick<RedisNodeOptions, 'intervalSeconds' | 'deadlineMs' | 'log'> {
  /** One location; two during a migration. */
  locations: readonly RedisLocation[]
  registry: Registry
}

type Nodes = Map<string, RedisNode>

/**
 * Polls Redis for its metrics (`pollNode`): the single server, the primary that the sentinels name, or every
 * node of a cluster including replicas and nodes that are down. One process of several workers is enough.
 *
 * @returns Function that stops polling.
 * @throws TypeError if a location is invalid.
 */
export function pollRedis(options: RedisPollerOptions): () => void {
  const { locations, registry } = options
  const polled = locations.map((location) => pollLocation(location, options))
  // Two databases of one server are one node.
  redisMetrics(registry, () => new Map(polled.flatMap(({ nodes }) => [...nodes])))
  return () => {
    for (const { stop } of polled) stop()
  }
}

function pollLocation(redis: RedisLocation, options: RedisPollerOptions) {
  const nodes: Nodes = new Map()
  if (redis.cluster) return { nodes, stop: pollCluster(redis.cluster, nodes, options) }
  const { url, tls, sentinel } = redis
  const name = sentinel?.name ?? nameOf(url ?? '')
  const node = pollNode({ ...options, server: { url, tls, sentinel }, name })
  nodes.set(name, node)
  return { nodes, stop: node.stop }
}

/** `host:port` or socket path, without user and password. */
function nameOf(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return protocol === 'unix:' ? decodeURIComponent(pathname) : host
}

/** Starts with the configured nodes, then discovers the nodes of the cluster with CLUSTER SHARDS. */
function pollCluster(
  cluster: ClusterAddress,
  nodes: Nodes,
  options: RedisPollerOptions,
): () => void {
  const { intervalSeconds } = options
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  function poll(names: ReadonlySet<string>): void {
    for (const [name, node] of nodes) {
      if (names.has(name)) continue
      node.stop()
      nodes.delete(name)
    }
    for (const name of names) {
      if (nodes.has(name)) continue
      nodes.set(name, pollNode({ ...options, server: serverOf(cluster, name), name }))
    }
  }

  async function discover(): Promise<void> {
    let found = new Set<string>()
    for (const node of [...nodes.values()]) {
      if (node.info !== undefined) found = nodesOf(await node.shards(), Boolean(cluster.tls))
      if (found.size > 0) break
    }
    if (stopped) return
    if (found.size > 0) poll(found)
    // Retry soon if no node has answered: the connections may still be opening.
    const waitMs = found.size > 0 ? intervalSeconds * 1000 : DISCOVERY_RETRY_MS
    timer = setTimeout(discover, waitMs).unref()
  }

  poll(new Set(cluster.nodes))
  void discover()
  return () => {
    stopped = true
    clearTimeout(timer)
    for (const node of nodes.values()) node.stop()
  }
}

const DISCOVERY_RETRY_MS = 500

function serverOf({ username, password, tls }: ClusterAddress, name: string) {
  const url = new URL(`${tls ? 'rediss' : 'redis'}://${name}`)
  if (password !== undefined) url.password = encodeURIComponent(password)
  if (username !== undefined) url.username = encodeURIComponent(username)
  return { url: url.href, tls: typeof tls === 'object' ? tls : undefined }
}

/** The nodes in a reply to CLUSTER SHARDS, as `host:port`, including nodes that are down. */
function nodesOf(shards: unknown, tls: boolean): Set<string> {
  const names = new Set<string>()
  for (const shard of listOf(shards)) {
    for (const node of listOf(fieldsOf(shard).get('nodes'))) {
      const fields = fieldsOf(node)
      const host = String(fields.get('endpoint') || fields.get('ip') || '')
      // A TLS proxy in front of a node is announced as `port`, not `tls-port`.
      const port = Number((tls && fields.get('tls-port')) || fields.get('port') || 0)
      if (host !== '' && port > 0) names.add(`${host.includes(':') ? `[${host}]` : host}:${port}`)
    }
  }
  return names
}

const listOf = (reply: unknown): readonly unknown[] => (Array.isArray(reply) ? reply : [])

/** RESP2 sends a map as a list of alternating names and values. */
function fieldsOf(reply: unknown): Map<unknown, unknown> {
  const list = listOf(reply)
  return new Map(
    Array.from({ length: list.length / 2 }, (_, index) => [list[2 * index], list[2 * index + 1]]),
  )
}
