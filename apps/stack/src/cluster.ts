import { join } from 'node:path'
import { Redis } from 'ioredis'
import { credentialsOf } from './address.ts'
import { formCluster } from './cluster/form.ts'
import { freePorts } from './ports.ts'
import { endOf, type Program } from './program.ts'
import { type RedisBuild, type RedisOptions, startRedis } from './start-redis.ts'
import { unlessAborted } from './until.ts'

export interface ClusterOptions {
  build?: RedisBuild
  /** Number of primaries, which share the slots. Default 3. */
  primaries?: number
  /** Replicas per primary. Default 1. */
  replicas?: number
  /** Ports of all nodes, primaries first, then the ports of their cluster buses. Default: free ports. */
  ports?: readonly number[]
  /** Each node keeps its data and its role in a subfolder, `1` and so on, so that a restart has the same cluster. */
  directory: string
  /** Folder for the Unix sockets of the nodes, which `admin` uses. Default: no sockets, `admin` uses TCP. */
  sockets?: string
  /** See `startRedis`. The folder also has the passwords of `cluster.acl` (apps/server-build). */
  secrets?: string | undefined
  /** See `startRedis`; for all nodes. */
  config?: RedisOptions['config']
  /** Called with the next step, such as `Forming the cluster`. */
  onStep?: ((text: string) => void) | undefined
  /** Cancels the start. */
  signal?: AbortSignal | undefined
}

/** A node of a local cluster. */
export interface ClusterNode {
  /** `127.0.0.1:port` */
  readonly address: string
  readonly port: number
  /**
   * A connection to this node, which waits while the node is down. With `secrets`, its user is `cluster`, which
   * has no access to keys.
   */
  readonly admin: Redis
  readonly program: Program
  /** Waits until the node has exited, then starts it again with its data. */
  restart(): Promise<void>
}

export interface LocalCluster {
  readonly nodes: readonly ClusterNode[]
  /** For each node, the address of its primary when the cluster was ready; null for a primary. */
  readonly primaries: readonly (string | null)[]
  /** Stops all nodes, including paused ones. Never rejects. */
  stop(graceMs?: number): Promise<void>
}

const HOST = '127.0.0.1'
const RETRY_MS = 100

const portCount = (primaries = 3, replicas = 1) => 2 * primaries * (1 + replicas)

/** The ports of a cluster with three primaries and three replicas, from `first` on. */
export const portsFrom = (first: number): number[] =>
  Array.from({ length: portCount() }, (_, index) => first + index)

/**
 * Starts a Redis Cluster on 127.0.0.1, forms it if necessary, and waits until all nodes agree and every replica
 * is in sync.
 *
 * @throws Problem if a node does not start, or exits meanwhile, or the cluster does not form; the reason of `signal`.
 *   No node is left running then.
 */
export async function startCluster(options: ClusterOptions): Promise<LocalCluster> {
  const { primaries = 3, replicas = 1, signal, onStep } = options
  const ports = options.ports ?? (await freePorts(portCount(primaries, replicas)))
  const count = ports.length / 2
  const nodes: Node[] = []
  const stop = async (graceMs?: number) => {
    for (const { admin, program } of nodes) {
      admin.disconnect()
      program.signal('SIGCONT') // a paused process handles SIGTERM only when it continues
    }
    await Promise.all(nodes.map(({ program }) => program.stop(graceMs)))
  }
  try {
    onStep?.(`Starting the ${count} nodes of a Redis Cluster`)
    const started = await Promise.allSettled(
      ports.slice(0, count).map(async (port, index) => {
        nodes.push(await startNode(options, { index, port, busPort: ports[count + index] ?? 0 }))
      }),
    )
    for (const result of started) if (result.status === 'rejected') throw result.reason
    nodes.sort((a, b) => a.index - b.index)
    onStep?.('Forming the cluster')
    const lost = new AbortController()
    for (const { program } of nodes) {
      void program.exited.then(async () => lost.abort(await endOf(program)))
    }
    const either = AbortSignal.any(signal ? [lost.signal, signal] : [lost.signal])
    const forming = formCluster(nodes, { primaries, signal: either })
    const seen = (await unlessAborted(either, forming)).map(({ self }) => self)
    const addressOf = (id: string | null) =>
      nodes.find((_, index) => seen[index]?.id === id)?.address ?? null
    return { nodes, primaries: seen.map(({ primary }) => addressOf(primary)), stop }
  } catch (error) {
    await stop(1_000)
    throw error
  }
}

type Node = Awaited<ReturnType<typeof startNode>>

async function startNode(
  { build, directory, sockets, secrets, config, signal }: ClusterOptions,
  { index, port, busPort }: { index: number; port: number; busPort: number },
) {
  const address = `${HOST}:${port}`
  const socket = sockets && join(sockets, `${index + 1}.sock`)
  const start = () =>
    startRedis({
      ...(build && { build }),
      ...(socket && { socket }),
      name: `the Redis node ${address}`,
      port,
      busPort,
      secrets,
      directory: join(directory, String(index + 1)),
      ...(config && { config }),
      ...(signal && { signal }),
    })
  let program = await start()
  const admin = new Redis({
    ...(socket ? { path: socket } : { host: HOST, port }),
    maxRetriesPerRequest: null,
    retryStrategy: () => RETRY_MS,
    ...(secrets !== undefined && credentialsOf('cluster', secrets)),
  })
  admin.on('error', () => {}) // while the node is down
  return {
    index,
    address,
    host: HOST,
    port,
    busPort,
    admin,
    get program() {
      return program
    },
    async restart() {
      await program.exited
      program = await start()
    },
  }
}
