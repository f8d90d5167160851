import type { Cluster } from 'ioredis'
import { type Client, isCluster, shortConnection } from '../connections/client.ts'
import { mastersOf } from '../connections/cluster.ts'
import { shortCluster } from '../connections/cluster-client.ts'
import { clusterOptions, serverOptions } from '../connections/location.ts'
import type { RedisAddress } from '../connections/redis-url.ts'
import { publishConnection } from '../diagnostics.ts'
import { notSent } from '../outcomes.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from '../strategy-options.ts'
import type { CommandList } from '../updates.ts'
import type { NodeSender, Sender } from './sender.ts'
import { oneByOne } from './wires.ts'

/**
 * What the source articles warn of: every update opens a connection, sends one command per round trip and
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
  const server: RedisAddress['options'] = cluster
    ? clusterOptions(cluster).redisOptions
    : serverOptions(options)
  const openServer = (to = server) => shortConnection(to, connectionMs, lean)
  const open = () => (cluster ? shortCluster(cluster, connectionMs, lean) : openServer())
  const sendOver = (client: Client, { commands }: CommandList) =>
    over(client, () => oneByOne.send(client, commands))
  const send: Sender['send'] = (list) => sendOver(open(), list)

  async function over<Result>(client: Client, work: () => Promise<Result>): Promise<Result> {
    connections.add(client)
    const timer = setTimeout(() => close(client), connectionMs)
    client.on('connect', publishConnection)
    client.once('end', () => {
      clearTimeout(timer)
      connections.delete(client)
    })
    try {
      await connect(client)
      const result = await work()
      // Redis closes the connection then: the side that closes first keeps its port in TIME_WAIT.
      await quit(client).catch(() => close(client))
      return result
    } catch (error) {
      close(client)
      throw error
    }
  }

  async function nodes(): Promise<NodeSender[]> {
    if (!cluster) {
      const { path, host, port } = server
      return [{ name: sentinel?.name ?? path ?? `${host}:${port}`, send }]
    }
    const client = open()
    const masters = await over(client, async () => mastersOf(client as Cluster))
    return masters.flatMap((name = '') => {
      const [, host, port] = /^(.+):(\d+)$/.exec(name) ?? []
      if (host === undefined) return []
      const node = { ...server, host, port: Number(port) }
      return { name, send: (list) => sendOver(openServer(node), list) }
    })
  }

  return {
    name: oneByOne.name,
    send,
    nodes,
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
