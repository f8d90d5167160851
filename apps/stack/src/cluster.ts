import { join } from 'node:path'
import { Redis } from 'ioredis'
import { credentialsOf } from './address.ts'
import { formCluster } from './cluster/form.ts'
import { freePorts } from './ports.ts'
import { endOf, type Program } from './program.ts'
import { type RedisBuild, type RedisOptions, startRedis } from './redis.ts'
import { unlessAborted } from './until.ts'

export interface ClusterOptions {
  build?: RedisBuild
  /** How many share the slots. Default 3. */
  primaries?: number
  /** Of each primary. Default 1. */
  replicas?: number
  /** Two for each node: first those of all nodes, primaries first, then those of the cluster bus. Default: free ones. */
  ports?: readonly number[]
  /** Each node keeps its data and its role in a folder below, `1` and so on: a second start is the same cluster. */
  directory: string
  /** Folder for a Unix socket of each node, which `admin` connects to. Default: none, it connects by TCP. */
  sockets?: string
  /** As of `startRedis`; the folder then has the passwords of `cluster.acl` (apps/server-build), too. */
  secrets?: string | undefined
  /** As of `startRedis`, for all nodes. */
  config?: RedisOptions['config']
  /** Called with what happens next, such as `Forming the cluster`. */
  onStep?: ((text: string) => void) | undefined
  /** Cancels the start. */
  signal?: AbortSignal | undefined
}

/** One Redis of a local cluster. */
export interface ClusterNode {
  /** `127.0.0.1:port` */
  readonly address: string
  readonly port: number
  /**
   * A connection to this node alone, which waits while the node is down. With `secrets` it has the user
   * `cluster`, who sees no key.
   */
  readonly admin: Redis
  readonly program: Program
  /** Starts it again, with its data, after it has ended. */
  restart(): Promise<void>
}

export interface LocalCluster {
  readonly nodes: readonly ClusterNode[]
  /** Stops all nodes, also paused ones. Never rejects. */
  stop(graceMs?: number): Promise<void>
}

const HOST = '127.0.0.1'
const RETRY_MS = 100

const portCount = (primaries = 3, replicas = 1) => 2 * primaries * (1 + replicas)

/** The ports of a cluster of three primaries with a replica each, from `first` on. */
export const portsFrom = (first: number): number[] =>
  Array.from({ length: portCount() }, (_, index) => first + index)

/**
 * Starts a Redis Cluster on 127.0.0.1, forms it where that has not happened yet, and waits until all nodes
 * agree and every replica has its copy.
 *
 * @throws ProgramError when a node does not start or ends meanwhile; Problem when the cluster does not form; the
 *   reason of `signal`. Nothing is left running then.
 */
export async function startCluster(options: ClusterOptions): Promise<LocalCluster> {
  const { primaries = 3, replicas = 1, signal, onStep } = options
  const ports = options.ports ?? (await freePorts(portCount(primaries, replicas)))
  const count = ports.length / 2
  const nodes: Node[] = []
  const stop = async (graceMs?: number) => {
    for (const { admin, program } of nodes) {
      admin.disconnect()
      program.signal('SIGCONT') // a stopped process takes SIGTERM only when it goes on
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
    await unlessAborted(either, formCluster(nodes, { primaries, signal: either }))
    return { nodes, stop }
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
      ...{ port, busPort, secrets, directory: join(directory, String(index + 1)) },
      ...(config && { config }),
      ...(signal && { signal }),
    })
  let program = await start()
  const admin = new Redis({
    ...(socket ? { path: socket } : { host: HOST, port }),
    maxRetriesPerRequest: null,
    retryStrategy: () => RETRY_MS,
    ...(secrets !== undefined && (await credentialsOf('cluster', secrets))),
  })
  admin.on('error', () => {}) // while the node is down
  return {
    ...{ index, address, host: HOST, port, busPort, admin },
    get program() {
      return program
    },
    async restart() {
      await program.exited
      program = await start()
    },
  }
}
