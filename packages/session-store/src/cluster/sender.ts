import { Cluster, type Redis } from 'ioredis'
import type { Command } from '../command.ts'
import { checkOptionNames, checkRange, MAX_TIMEOUT_MS, type NamesOf } from '../input.ts'
import { safeRedisOptions } from '../redis/client.ts'
import { Deadlines } from '../redis/deadlines.ts'
import { sendPipeline, sendWith } from '../redis/frame.ts'
import { DEADLINES_UNTIL_STALLED } from '../redis/handshake.ts'
import { notSent, type Outcome } from '../redis/outcomes.ts'
import { disconnect } from '../redis/pool.ts'
import type { NodeSender, Sender } from '../redis/sender.ts'
import { subscribeWith } from '../redis/subscribing.ts'
import { type ClusterAddress, loginNames } from './address.ts'
import { batchingPerNode } from './batching.ts'
import { checkCluster, clusterAt, connectionError } from './client.ts'
import { ClusterHealth } from './health.ts'
import {
  nodesOf,
  primariesOf,
  primaryStates,
  refreshSlots,
  type SendToNode,
  sendToPrimary,
} from './nodes.ts'
import { nullIfRedirected } from './redirections.ts'
import { checkKeys } from './slots.ts'
import { watchCluster } from './watch.ts'

/** Set either `nodes` or `client`. */
export interface ClusterSenderOptions extends Partial<ClusterAddress> {
  /** A `Cluster` of ioredis, created with `safeClusterOptions`. The sender never closes it. */
  client?: Cluster | undefined
  /** The deadline of the store. A connection attempt takes at most half of it. Default 2,000. */
  deadlineMs?: number | undefined
}

const optionNames: NamesOf<ClusterSenderOptions> = {
  ...loginNames,
  nodes: true,
  client: true,
  deadlineMs: true,
}

/**
 * A sender to a Redis Cluster, with one connection to each node: one batch to each node for the operations of an
 * event-loop turn. Use it with `keys: partitionedKeys()`.
 *
 * @throws TypeError if an option is invalid.
 */
export function clusterSender(options: ClusterSenderOptions): Sender {
  checkOptionNames('clusterSender', options, optionNames)
  const { client, deadlineMs = 2_000, ...login } = options
  checkRange('deadlineMs', deadlineMs, { min: 1, max: MAX_TIMEOUT_MS })
  if ((client === undefined) === (login.nodes === undefined)) {
    throw new TypeError('clusterSender needs either nodes or client')
  }
  if (client) checkCluster(client)
  const address = client ? undefined : { ...login, nodes: login.nodes ?? [] }
  const stalledAfterMs = DEADLINES_UNTIL_STALLED * deadlineMs
  const cluster = client ?? clusterAt(address as ClusterAddress, { deadlineMs, stalledAfterMs })
  const watch = watchCluster(cluster, stalledAfterMs)
  const health = new ClusterHealth(cluster, leave)
  const deadlines = new Deadlines(deadlineMs)
  let isClosed = false

  function requireReady(): void {
    if (isClosed) throw notSent('the sender is closed')
    if (cluster.status === 'wait') cluster.connect().catch(() => undefined) // the watch has the error
    if (!watch.isReady) throw notSent('there is no connection', watch.lastError)
  }

  const send = sendWith(cluster instanceof Cluster)

  const toNode: SendToNode = async (node, commands) => {
    const late = deadlines.start(findSuccessor)
    try {
      return await sendToPrimary(cluster, send, node, commands)
    } finally {
      deadlines.stop(late)
    }
  }

  /** Another node may have taken over from one whose reply is late. */
  function findSuccessor(): void {
    refreshSlots(cluster)
    health.suspect()
  }

  return {
    name: 'batch',
    send: batchingPerNode(cluster, { requireReady, toNode }),
    connections() {
      const states = primaryStates(cluster)
      return { connections: states.length, ready: states.filter(Boolean).length }
    },
    subscribe(...subscription) {
      const redis = copyOfAnyNode(cluster)
      const { ping, ...others } = subscribeWith(redis, ...subscription)
      return {
        ...others,
        async ping() {
          await ping()
          const names = cluster.nodes('master').map(addressOf)
          if (!names.includes(addressOf(redis))) throw new Error('the node is no primary any more')
        },
      }
    },
    async close() {
      isClosed = true
      health.stop()
      if (address) await disconnect(cluster)
      watch.stop()
      // ioredis prints errors if there is no listener.
      if (address) cluster.on('error', () => {})
    },
    topology: {
      async nodes() {
        requireReady()
        return primariesOf(cluster).map((primary): NodeSender => {
          const name = primary ?? 'none'
          return { name, send: ({ commands }) => sendToOne(cluster, primary, commands) }
        })
      },
      serversOf: (commands) => nodesOf(cluster, commands).map((node) => node ?? 'none'),
      checkKeys,
      whyNotReady: async () => address && (await connectionError(address, deadlineMs)),
    },
  }
}

const addressOf = ({ options: { host, port } }: Redis) => `${host}:${port}`

/** The nodes pass messages on to each other. */
function copyOfAnyNode(cluster: Cluster): Redis {
  const nodes = cluster.nodes('master')
  const node = nodes[Math.floor(Math.random() * nodes.length)]
  if (!node) throw notSent('the nodes of the cluster are not known')
  return node.duplicate({ ...safeRedisOptions, lazyConnect: true, retryStrategy: null })
}

async function sendToOne(
  cluster: Cluster,
  node: string | undefined,
  commands: readonly Command[],
): Promise<Outcome[]> {
  const outcomes = await sendToPrimary(cluster, sendPipeline, node, commands)
  return outcomes.map(nullIfRedirected)
}

/** Ends the connection to a node that has failed: the callers of commands in flight get unknown outcomes now. */
function leave(node: Redis): void {
  node.stream?.destroy(new Error('the other nodes of the cluster call this node failed'))
}
