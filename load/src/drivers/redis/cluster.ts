import { freePorts } from '@onetrip/stack/ports.ts'
import { until } from '@onetrip/stack/until.ts'
import { Redis } from 'ioredis'
import type { Context } from '../../experiment/experiment.ts'
import type { RedisServer } from './server.ts'

const SLOTS = 16_384

/**
 * Starts a Redis Cluster of primaries with even ranges of slots, and waits until they agree.
 *
 * @throws as `context.startRedis`; when Redis refuses a command; the reason of `context.signal`.
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
  const admins = servers.map(({ socket }) => new Redis(socket))
  const agree = async () => {
    const infos = await Promise.all(admins.map((admin) => admin.cluster('INFO')))
    return infos.every(
      (info) => info.includes('cluster_state:ok') && info.includes(`cluster_size:${nodes}\r`),
    )
  }
  try {
    for (const [index, admin] of admins.entries()) {
      const [first, next] = [index, index + 1].map((at) => Math.ceil((at * SLOTS) / nodes))
      await admin.cluster('SET-CONFIG-EPOCH', index + 1)
      await admin.cluster('ADDSLOTSRANGE', first ?? 0, (next ?? SLOTS) - 1)
      const [port = 0, bus = 0] = [servers[index]?.port, buses[index]]
      // The first one meets itself: only then it knows its address, which clients need.
      await admins[0]?.cluster('MEET', '127.0.0.1', port, bus)
    }
    await context.step('Waiting for the nodes to agree', () =>
      until(agree, { signal: context.signal }),
    )
  } finally {
    for (const admin of admins) admin.disconnect()
  }
  return servers
}
