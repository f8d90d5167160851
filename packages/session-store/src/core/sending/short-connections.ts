import type { Cluster } from 'ioredis'
import { shortCluster } from '../../cluster/client.ts'
import { clusterOptions, serverOptions } from '../../cluster/location.ts'
import { primariesOf } from '../../cluster/nodes.ts'
import { type Client, isCluster, shortConnection } from '../connections/client.ts'
import type { RedisAddress } from '../connections/redis-url.ts'
import { publishConnection } from '../diagnostics.ts'
import type { CommandList } from '../operations.ts'
import { notSent } from '../outcomes.ts'
import type { NodeSender, Sender } from './sender.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from './strategy-options.ts'
import { oneByOne } from './wires.ts'

/**
 * The pattern that the source articles warn of: every update opens a connection, sends one command per round
 * trip and closes the connection. In a cluster, every update first asks for the table of slots, then connects to
 * each node that it needs.
 *
 * @param lean False: ioredis's default handshake (HELLO, client info, INFO as a ready check), as an application
 *   would use it, but without retries. True: no commands at connecting, the minimum for a connection per
 *   request. Both close with QUIT.
 * @throws TypeError unless exactly one location and no client is set.
 */
export function shortConnections(options: StrategyOptions, lean: boolean): Sender {
  const { url, sentinel, cluster, client, deadlineMs = DEFAULT_DEADLINE_MS } = options
  const locations = [url, sentinel, cluster].filter((location) => location !== undefined)
  if (locations.length !== 1 || client !== undefined) {
    throw new TypeError(
      'the naive strategies open their own connections: set one of url, sentinel and cluster, and no client',
    )
  }
  // Before the deadline of the store, because errors of the connection are more precise.
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
      // After QUIT, Redis closes first. The side that closes first keeps the port in TIME_WAIT.
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
    const primaries = await over(client, async () => primariesOf(client as Cluster))
    return primaries.flatMap((name = '') => {
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

/** Closes an open connection. After a failed attempt to connect, `disconnect()` would start a timer of 2 s. */
function close(client: Client): void {
  if (client.status !== 'end') client.disconnect()
}
