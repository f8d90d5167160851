import { setTimeout as delay } from 'node:timers/promises'
import { partitionedKeys } from '@onetrip/cluster'
import { type ClusterNode, startCluster } from '@onetrip/stack/cluster.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { moveSlot } from '@onetrip/stack/testing/move-slot.ts'
import { Cluster } from 'ioredis'
import { holdingsOf } from './one-redis.ts'
import { durable, PAUSE_MS, type SoakRedis, type SoakScope } from './redis.ts'

const PRIMARIES = 3

/**
 * Starts three primaries without replicas. Replication is asynchronous, so after a failover a replica may lack
 * acknowledged views. A killed node restarts with its append-only file.
 *
 * @throws ProgramError, Problem.
 */
export async function startSoakCluster(scope: SoakScope): Promise<SoakRedis> {
  const { directory, defer, signal } = scope
  const config = { ...durable, 'cluster-node-timeout': '2000' } // shorter than PAUSE_MS
  const cluster = await startCluster({
    primaries: PRIMARIES,
    replicas: 0,
    directory,
    config,
    signal,
  })
  const { nodes } = cluster
  const expected = new Set<ClusterNode>()
  const watch = (node: ClusterNode) => {
    const { program } = node
    void program.exited.then(async () => expected.has(node) || scope.fail(await endOf(program)))
  }
  for (const node of nodes) watch(node)
  defer(async () => {
    for (const node of nodes) expected.add(node)
    await cluster.stop()
  })
  const client = new Cluster(
    nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
    { clusterRetryStrategy: () => 100, redisOptions: { maxRetriesPerRequest: null } },
  )
  client.on('error', () => {}) // faults cause errors
  defer(() => client.disconnect())
  const keys = partitionedKeys()
  let turn = 0
  /** Returns the nodes in turn. */
  const next = () => nodes[turn++ % nodes.length] as ClusterNode
  return {
    url: `redis+cluster://${nodes.map(({ address }) => address).join(',')}`,
    keys,
    client,
    async read() {
      const all = (await Promise.all(nodes.map(({ admin }) => admin.info()))).map(holdingsOf)
      const sumOf = (name: keyof (typeof all)[number]) =>
        all.reduce((sum, holdings) => sum + holdings[name], 0)
      return {
        'Redis memory': sumOf('Redis memory'),
        'Redis RSS': sumOf('Redis RSS'),
        'Redis connections': sumOf('Redis connections'),
      }
    },
    faults: [
      {
        name: 'a node killed and restarted',
        async run() {
          const node = next()
          expected.add(node)
          node.program.signal('SIGKILL')
          await node.restart()
          watch(node)
          expected.delete(node)
        },
      },
      {
        name: 'connections killed at all nodes',
        async run() {
          for (const { admin } of nodes) await admin.call('CLIENT', 'KILL', 'TYPE', 'normal')
        },
      },
      {
        name: 'a slot with sessions moved',
        async run() {
          const to = next()
          const [login = ''] = keys.parts().map((part) => part.login)
          await moveSlot(nodes, {
            slot: Number(await to.admin.call('CLUSTER', 'KEYSLOT', login)),
            to,
          })
        },
      },
      {
        name: 'a node paused for 3 s',
        async run() {
          const { program } = next()
          program.signal('SIGSTOP')
          await delay(PAUSE_MS)
          program.signal('SIGCONT')
        },
      },
    ],
  }
}
