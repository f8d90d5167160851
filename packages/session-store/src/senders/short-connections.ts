import type { Cluster } from 'ioredis'
import { type Client, isCluster, shortConnection } from '../connections/client.ts'
import { mastersOf } from '../connections/cluster.ts'
import { shortCluster } from '../connections/cluster-client.ts'
import { type ClusterAddress, clusterOptions, serverOptions } from '../connections/location.ts'
import { publishConnection } from '../diagnostics.ts'
import { notSent } from '../outcomes.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from '../strategy-options.ts'
import type { NodeSender, Sender } from './sender.ts'
import { oneByOne } from './wires.ts'

/**
 * What the documents warn of: every update opens a connection, sends one command per round trip and
 * closes the connection.
 *
 * @param lean False: as an application would write it, with ioredis's defaults (HELLO, client info, INFO
 *   as a ready check) and its graceful end (`quit`), but no retries. True: the client sends nothing by
 *   itself when it connects, the least that a connection for each request can cost. On a cluster, each
 *   update asks for the slots first, and connects to each node that it needs.
 * @throws TypeError unless there is one location and no client.
 */
export function shortConnections(options: StrategyOptions, lean: boolean): Sender {
  const { url, sentinel, cluster, client, deadlineMs = DEFAULT_DEADLINE_MS } = options
  const locations = [url, sentinel, cluster].filter((location) => location !== undefined)
  if (locations.length !== 1 || client !== undefined) {
    throw new TypeError(
      'the naive strategies open connections: they need one url, sentinel or cluster, and no client',
    )
  }
  // Before the store's own deadline, since a connection tells better what happened.
  const connectionMs = Math.ceil(0.9 * deadlineMs)
  const connections = new Set<Client>()
  const opener = (): (() => Client) => {
    if (cluster) {
      clusterOptions(cluster) // throws now, and not with the first update
      return () => shortCluster(cluster, connectionMs, lean)
    }
    const server = serverOptions(options)
    return () => shortConnection(server, connectionMs, lean)
  }
  const open = opener()

  async function over<Result>(client: Client, work: (client: Client) => Promise<Result>) {
    connections.add(client)
    const timer = setTimeout(() => close(client), connectionMs)
    client.on('connect', publishConnection)
    client.once('end', () => {
      clearTimeout(timer)
      connections.delete(client)
    })
    try {
      await connect(client)
      const result = await work(client)
      // Redis closes the connection then: the side that closes first keeps its port in TIME_WAIT.
      await quit(client).catch(() => close(client))
      return result
    } catch (error) {
      close(client)
      throw error
    }
  }

  /** Each node by a connection of its own. */
  async function nodesOf(cluster: ClusterAddress): Promise<NodeSender[]> {
    const masters = await over(open(), async (client) => mastersOf(client as Cluster))
    const { redisOptions } = clusterOptions(cluster)
    return masters.flatMap((name = '') => {
      const [, host, port] = /^(.+):(\d+)$/.exec(name) ?? []
      if (host === undefined) return []
      const server = { ...redisOptions, host, port: Number(port) }
      const open = () => shortConnection(server, connectionMs, lean)
      return {
        name,
        send: ({ commands }) => over(open(), (client) => oneByOne.send(client, commands)),
      }
    })
  }

  return {
    name: oneByOne.name,
    send: ({ commands }) => over(open(), (client) => oneByOne.send(client, commands)),
    ...(cluster && { nodes: () => nodesOf(cluster) }),
    async close() {
      for (const client of connections) close(client)
    },
  }
}

async function connect(client: Client): Promise<void> {
  let reason: unknown
  client.on('error', (error) => {
    reason = error
  })
  try {
    await client.connect()
  } catch (error) {
    throw notSent('no connection could be opened', reason ?? error)
  }
}

async function quit(client: Client): Promise<void> {
  if (!isCluster(client)) return void (await client.quit())
  const open = client.nodes().filter(({ status }) => status === 'ready')
  await Promise.all(open.map((redis) => redis.quit()))
  close(client)
}

/** Closes what is still open. After an attempt that failed, `disconnect()` would keep a timer of 2 s. */
function close(client: Client): void {
  if (client.status !== 'end') client.disconnect()
}
