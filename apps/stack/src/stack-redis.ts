import {
  passwordFileOf,
  type RedisTarget,
  type RedisUser,
  redisAddress,
  type Transport,
  unixUrl,
  withPasswordOf,
} from './address.ts'
import { watchLosses } from './cluster/losses.ts'
import { type View, viewOf } from './cluster/view.ts'
import { portsFrom, startCluster } from './cluster.ts'
import { socketIn } from './places.ts'
import type { Program } from './program.ts'
import { type RedisBuild, startRedis } from './redis.ts'

/** A Redis that the stack starts. */
export interface OwnRedis {
  kind: 'own'
  /** Unless REDIS_SERVER names an installed redis-server. */
  build: RedisBuild
  transport: Transport
  port: number
  /** Folder for its socket. */
  run: string
  /** Folder where it keeps its data. */
  directory: string
  /** Folder of its users' passwords, made where absent. */
  secrets: string
  /** Further configuration, such as `{ 'io-threads': '3' }`. */
  config?: Record<string, string>
}

/** A Redis Cluster that the stack starts: three primaries, each with a replica. */
export interface OwnCluster extends Omit<OwnRedis, 'kind' | 'transport' | 'run'> {
  kind: 'cluster'
  /** Of the first node; the others have the next ones, and after them the cluster buses. */
  port: number
}

/** A Redis that runs already, and is left running. */
export interface ForeignRedis {
  kind: 'foreign'
  url: string
}

export type WantedRedis = OwnRedis | OwnCluster | ForeignRedis

/** What the start of a stack's Redis needs besides. */
export interface RedisStartOptions {
  /** Cancels the start; what runs by then is stopped. */
  signal: AbortSignal
  /** Called with what happens next during the start, such as `Starting the APIs`. */
  onStep?: (text: string) => void
  /** Called with lines about nodes of a cluster that end by themselves, which the stack survives. */
  onLoss?: (line: string) => void
}

/** The Redis of a running stack. */
export interface RunningRedis {
  /** For monitoring: of an own Redis, with the user `operator` and the password. Of a cluster, the first node. */
  url: string
  transport: Transport
  /** The build that was started, `installed` (REDIS_SERVER) or `foreign`. */
  build: string
  /** Null for a foreign one, and for a cluster. */
  pid: number | null
  /** Path of an own Redis's Unix socket, whichever transport the APIs use. A cluster has none. */
  socket: string | null
  /** Of a cluster; with URLs as above, and with what each was when the cluster was ready. */
  nodes?: readonly {
    url: string
    pid: number
    /** The address of its primary; null for a primary. */
    replicaOf: string | null
  }[]
}

// Redis may have to write to disk.
const REDIS_GRACE_MS = 20_000

/** A Redis that a stack uses, and how to stop what was started for it. */
export interface UsedRedis {
  /** For the APIs. */
  target: RedisTarget
  record: RunningRedis
  stop(): Promise<void>
}

/** What happens when a server ends by itself. */
interface Watch {
  /** Ends the stack when this program ends. */
  watch(program: Program): void
  /** Ends the stack, which has lost this program. */
  lose(program: Program): void
  stopping(): boolean
}

/**
 * Starts the Redis of a stack, or takes the foreign one.
 *
 * @throws as `startRedis` and `startCluster`; nothing is left running then.
 */
export async function useRedis(
  wanted: WantedRedis,
  options: RedisStartOptions,
  watch: Watch,
): Promise<UsedRedis> {
  if (wanted.kind === 'foreign') return foreignRedis(wanted)
  if (wanted.kind === 'own') return await ownRedis(wanted, options, watch)
  return await ownCluster(wanted, options, watch)
}

function foreignRedis({ url }: ForeignRedis): UsedRedis {
  const { transport } = redisAddress(url)
  const record = { url, transport, build: 'foreign', pid: null, socket: null }
  return { target: { url }, record, stop: async () => {} }
}

/** The build that runs, and the folder of secrets: an installed server may be too old for our users. */
const builtOrInstalled = ({ build, secrets }: Pick<OwnRedis, 'build' | 'secrets'>) =>
  process.env.REDIS_SERVER ? { build: 'installed', secrets: undefined } : { build, secrets }

async function ownRedis(
  wanted: OwnRedis,
  { signal }: RedisStartOptions,
  { watch }: Watch,
): Promise<UsedRedis> {
  const { transport, port } = wanted
  const { build, secrets } = builtOrInstalled(wanted)
  const socket = await socketIn(wanted.run)
  const { path } = socket
  let program: Program | undefined
  const stop = async () => {
    await program?.stop(REDIS_GRACE_MS)
    await socket.remove()
  }
  try {
    program = await startRedis({ ...wanted, socket: path, secrets, signal })
    watch(program)
    const bare = transport === 'unix' ? unixUrl(path) : `redis://127.0.0.1:${port}`
    const urlFor = async (user: RedisUser) =>
      secrets ? await withPasswordOf(user, bare, secrets) : bare
    const record = { url: await urlFor('operator'), transport, build }
    return {
      target: { url: await urlFor('api') },
      record: { ...record, pid: program.pid, socket: path },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function ownCluster(
  wanted: OwnCluster,
  { signal, onStep, onLoss }: RedisStartOptions,
  { lose, stopping }: Watch,
): Promise<UsedRedis> {
  const { directory } = wanted
  const { build, secrets } = builtOrInstalled(wanted)
  const cluster = await startCluster({
    ...{ build: wanted.build, ports: portsFrom(wanted.port) },
    ...{ directory, secrets, signal, onStep },
  })
  const { nodes } = cluster
  const stop = () => cluster.stop(REDIS_GRACE_MS)
  try {
    const urls = nodes.map(({ address }) => `redis://${address}`)
    const monitored = secrets
      ? await Promise.all(urls.map((url) => withPasswordOf('operator', url, secrets)))
      : urls
    const views = await Promise.all(nodes.map(({ admin }) => viewOf(admin)))
    const replicaOf = ({ self }: View) =>
      nodes.find((_, index) => views[index]?.self.id === self.primary)?.address ?? null
    const user = secrets && { username: 'api', passwordFile: passwordFileOf('api', secrets) }
    void watchLosses(nodes, { say: (line) => onLoss?.(line), stopping }).then(lose)
    return {
      target: { cluster: nodes.map(({ address }) => address), ...user },
      record: {
        ...{ url: monitored[0] ?? '', transport: 'tcp', build, pid: null, socket: null },
        nodes: nodes.map(({ program: { pid } }, index) => ({
          ...{ url: monitored[index] ?? '', pid },
          replicaOf: replicaOf(views[index] as View),
        })),
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
