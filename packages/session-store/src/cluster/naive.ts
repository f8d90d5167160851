import type { Cluster, Redis } from 'ioredis'
import { shortConnection } from '../redis/client.ts'
import type { Sender } from '../redis/sender.ts'
import { ShortConnections, timeoutOfConnection } from '../redis/short-connections.ts'
import { inSequence, oneByOne, sendPipeline } from '../redis/wires.ts'
import { type ClusterAddress, clusterOptions } from './address.ts'
import { shortCluster } from './client.ts'
import { primariesOf, sendPerNode, sendToPrimary } from './nodes.ts'
import { nullIfRedirected } from './redirections.ts'
import { checkKeys } from './slots.ts'

/**
 * As `shortConnections`, for a cluster: every operation first asks for the table of slots, then connects to each node
 * that it needs. `maxInFlight` applies to all nodes together.
 */
export function naiveClusterSender(address: ClusterAddress, deadlineMs: number): Sender {
  const connectionMs = timeoutOfConnection(deadlineMs)
  const { redisOptions } = clusterOptions(address)
  const clusters = new ShortConnections<Cluster>(connectionMs, quit)
  const nodes = new ShortConnections<Redis>(connectionMs, (redis) => redis.quit())
  const openNode = (name: string) => {
    const [, host = '', port] = /^(.+):(\d+)$/.exec(name) ?? []
    return shortConnection({ ...redisOptions, host, port: Number(port) }, connectionMs)
  }
  return {
    name: 'naive',
    async send({ commands }) {
      const cluster = shortCluster(address, connectionMs)
      return await clusters.use(cluster, () =>
        inSequence(commands, async (command) => {
          const [outcome = null] = await sendPerNode(cluster, [command], (node, own) =>
            sendToPrimary(cluster, sendPipeline, node, own),
          )
          return outcome
        }),
      )
    },
    async close() {
      clusters.close()
      nodes.close()
    },
    topology: {
      async nodes() {
        const cluster = shortCluster(address, connectionMs)
        const names = await clusters.use(cluster, async () => primariesOf(cluster))
        return names.flatMap((name) => {
          if (name === undefined) return []
          return {
            name,
            async send({ commands }) {
              const redis = openNode(name)
              const outcomes = await nodes.use(redis, () => oneByOne.send(redis, commands))
              return outcomes.map(nullIfRedirected)
            },
          }
        })
      },
      checkKeys,
    },
  }
}

async function quit(cluster: Cluster): Promise<void> {
  const open = cluster.nodes().filter(({ status }) => status === 'ready')
  await Promise.all(open.map((redis) => redis.quit()))
  cluster.disconnect()
}
