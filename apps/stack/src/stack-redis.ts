import {
  passwordFileOf,
  type RedisTarget,
  type RedisUser,
  redisAddress,
  unixUrl,
  withPasswordOf,
} from './address.ts'
import { watchLosses } from './cluster/losses.ts'
import { type View, viewOf } from './cluster/view.ts'
import { portsFrom, startCluster } from './cluster.ts'
import { socketIn } from './places.ts'
import type { Program } from './program.ts'
import { startRedis } from './redis.ts'
import type { ForeignRedis, OwnCluster, OwnRedis, RunningPrograms, StackOptions } from './stack.ts'

// Redis may have to write to disk.
const REDIS_GRACE_MS = 20_000

/** A Redis that a stack uses, and how to stop what was started for it. */
export interface UsedRedis {
  /** For the APIs. */
  target: RedisTarget
  record: RunningPrograms['redis']
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
  wanted: StackOptions['redis'],
  options: StackOptions,
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
  { signal }: StackOptions,
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
  { signal, onStep, onLoss }: StackOptions,
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
