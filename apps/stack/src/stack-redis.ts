import { parseRedisUrl, type RedisAddress } from '@onetrip/session-store'
import { type Transport, unixUrl, urlFor } from './address.ts'
import { type ClusterNode, portsFrom, startCluster } from './cluster.ts'
import { socketIn } from './places.ts'
import { endOf, type Program } from './program.ts'
import { type RedisBuild, startRedis } from './start-redis.ts'

/** A Redis that the stack starts. */
export interface OwnRedis {
  kind: 'own'
  /** Ignored if REDIS_SERVER is set. */
  build: RedisBuild
  transport: Transport
  port: number
  /** Folder for the socket. */
  run: string
  /** Data directory. */
  directory: string
  /** Folder of the users' passwords; missing ones are generated. */
  secrets: string
  /** Further configuration, such as `{ 'io-threads': '3' }`. */
  config?: Record<string, string>
}

/** A Redis Cluster that the stack starts: three primaries, each with a replica. */
export interface OwnCluster extends Omit<OwnRedis, 'kind' | 'transport' | 'run'> {
  kind: 'cluster'
  /** Port of the first node. The other nodes have the next ports, and the cluster buses those after. */
  port: number
}

/** A Redis that is already running, and is left running. */
export interface ForeignRedis {
  kind: 'foreign'
  url: string
}

export type WantedRedis = OwnRedis | OwnCluster | ForeignRedis

/** Further options for the start of a stack's Redis. */
export interface RedisStartOptions {
  /** Cancels the start and stops what is running. */
  signal: AbortSignal
  /** Called with the next step of the start, such as `Starting the APIs`. */
  onStep?: (text: string) => void
  /** Called with a message about each node of a cluster that exits while others run. The stack keeps running. */
  onLoss?: (line: string) => void
}

/** The Redis of a running stack. */
export interface RunningRedis {
  /**
   * URL for monitoring. If the stack started Redis, it contains the user `operator` and the password. For a cluster,
   * the URL of the first node.
   */
  url: string
  transport: RedisAddress['transport']
  /** The name of the build, `installed` (REDIS_SERVER) or `foreign`. */
  build: string
  /** Null for a foreign Redis, and for a cluster. */
  pid: number | null
  /** Path of the Unix socket, for any transport of the APIs. Null for a foreign Redis, and for a cluster. */
  socket: string | null
  /** The nodes of a cluster, with URLs as above and their roles when the cluster was ready. */
  nodes?: readonly {
    url: string
    pid: number
    /** Address of the primary; null for a primary. */
    replicaOf: string | null
  }[]
}

// Redis may have to write to disk.
const REDIS_GRACE_MS = 20_000

/** The Redis of a stack. */
export interface UsedRedis {
  /** URL with the credentials of the APIs. */
  url: string
  record: RunningRedis
}

/** How the stack reacts to servers that exit. */
interface Watch {
  /** Ends the stack when this program exits. */
  watch(program: Program): void
  /** Ends the stack, because this program has exited. */
  lose(program: Program): void
  stopping(): boolean
}

/**
 * Starts the Redis of a stack, or uses the foreign one.
 *
 * @param undo stops what was started, also after an error.
 * @throws as `startRedis` and `startCluster`.
 */
export async function useRedis(
  wanted: WantedRedis,
  options: RedisStartOptions,
  watch: Watch,
  undo: AsyncDisposableStack,
): Promise<UsedRedis> {
  if (wanted.kind === 'foreign') return foreignRedis(wanted)
  if (wanted.kind === 'own') return await ownRedis(wanted, options, watch, undo)
  return await ownCluster(wanted, options, watch, undo)
}

function foreignRedis({ url }: ForeignRedis): UsedRedis {
  const { transport } = parseRedisUrl(url)
  const record = { url, transport, build: 'foreign', pid: null, socket: null }
  return { url, record }
}

/** The build and the folder of secrets. Without secrets for an installed server: it may be too old for our users. */
const builtOrInstalled = ({ build, secrets }: Pick<OwnRedis, 'build' | 'secrets'>) =>
  process.env.REDIS_SERVER ? { build: 'installed', secrets: undefined } : { build, secrets }

async function ownRedis(
  wanted: OwnRedis,
  { signal }: RedisStartOptions,
  { watch }: Watch,
  undo: AsyncDisposableStack,
): Promise<UsedRedis> {
  const { transport, port } = wanted
  const { build, secrets } = builtOrInstalled(wanted)
  const { path: socket, remove } = await socketIn(wanted.run)
  undo.defer(remove)
  const program = await startRedis({ ...wanted, socket, secrets, signal })
  undo.defer(async () => void (await program.stop(REDIS_GRACE_MS)))
  watch(program)
  const bare = transport === 'unix' ? unixUrl(socket) : `redis://127.0.0.1:${port}`
  return {
    url: urlFor('api', bare, secrets),
    record: {
      url: urlFor('operator', bare, secrets),
      transport,
      build,
      pid: program.pid,
      socket,
    },
  }
}

async function ownCluster(
  wanted: OwnCluster,
  { signal, onStep, onLoss }: RedisStartOptions,
  watch: Watch,
  undo: AsyncDisposableStack,
): Promise<UsedRedis> {
  const { build, secrets } = builtOrInstalled(wanted)
  const { nodes, primaries, stop } = await startCluster({
    build: wanted.build,
    ports: portsFrom(wanted.port),
    directory: wanted.directory,
    secrets,
    signal,
    onStep,
  })
  undo.defer(() => stop(REDIS_GRACE_MS))
  const addresses = nodes.map(({ address }) => address)
  const monitored = addresses.map((address) => urlFor('operator', `redis://${address}`, secrets))
  watchNodes(nodes, watch, onLoss)
  return {
    url: urlFor('api', `redis+cluster://${addresses.join(',')}`, secrets),
    record: {
      url: monitored[0] ?? '',
      transport: 'tcp',
      build,
      pid: null,
      socket: null,
      nodes: nodes.map(({ program: { pid } }, index) => ({
        url: monitored[index] ?? '',
        pid,
        replicaOf: primaries[index] ?? null,
      })),
    },
  }
}

/** Reports nodes that exit. Ends the stack when the last one has exited. */
function watchNodes(
  nodes: readonly ClusterNode[],
  { lose, stopping }: Watch,
  onLoss?: (line: string) => void,
): void {
  let running = nodes.length
  for (const { program } of nodes) {
    void program.exited.then(async () => {
      running--
      if (stopping()) return
      if (running === 0) return lose(program)
      onLoss?.(`The cluster continues without a node: ${(await endOf(program)).message}`)
    })
  }
}
