import { formCluster } from '@onetrip/stack/cluster/form.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Redis } from 'ioredis'
import type { Context } from '../../experiments/experiment.ts'
import type { RedisServer } from './server.ts'

/**
 * Starts a Redis Cluster of primaries with equal ranges of slots, and waits until all nodes agree.
 *
 * @throws as `context.startRedis` and `formCluster`.
 */
export async function startCluster(
  context: Context,
  nodes: number,
  config: Record<string, string>,
): Promise<RedisServer[]> {
  const servers: RedisServer[] = []
  const buses = await freePorts(nodes)
  for (const bus of buses) {
    const ofNode = { ...config, 'cluster-enabled': 'yes', 'cluster-port': String(bus) }
    servers.push(await context.startRedis({ build: 'patched', config: ofNode }))
  }
  const members = servers.map(({ socket, port }, index) => ({
    host: '127.0.0.1',
    port,
    busPort: buses[index] ?? 0,
    admin: new Redis(socket),
  }))
  try {
    await context.step('Forming the cluster', () =>
      formCluster(members, { primaries: nodes, signal: context.signal }),
    )
  } finally {
    for (const { admin } of members) admin.disconnect()
  }
  return servers
}
