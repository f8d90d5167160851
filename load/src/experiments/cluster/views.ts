import { cluster } from '@onetrip/cluster'
import { SessionStore } from '@onetrip/session-store'
import { seededRandom, skewedItems } from '@onetrip/stack/measure/workload.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { RedisMonitor, type RedisReading } from '@onetrip/stack/redis-info.ts'
import { startCluster } from '../../drivers/redis/cluster.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { CpuReading } from '../../drivers/redis/threads.ts'
import type { Context } from '../experiment.ts'

/** A Redis whose resources are measured. */
interface Watched {
  readonly server: RedisServer
  readonly monitor: RedisMonitor
}

/** The nodes, and their clients. */
export interface Views {
  readonly nodes: readonly Watched[]
  /** One per client. */
  readonly stores: readonly SessionStore[]
  readonly tokens: readonly string[]
  readonly nextItem: () => string
}

/** The factor `nodes` of a single Redis without a cluster. */
export const NO_CLUSTER = 0

const CONFIG = { appendonly: 'yes', maxmemory: '0' }
const [SESSIONS, ITEMS, SEED] = [1_000, 1_000, 17]

/** Starts a cluster or a single Redis, opens clients, and logs users in. */
export async function startViews(
  context: Context,
  count: number,
  { clients, partitions }: { clients: number; partitions: number },
): Promise<Views> {
  const isCluster = count !== NO_CLUSTER
  const servers = isCluster
    ? await startCluster(context, count, CONFIG)
    : [await context.startRedis({ build: 'patched', config: CONFIG })]
  const nodes = servers.map(({ port }) => `127.0.0.1:${port}`)
  const deadlineMs = 30_000
  const signing = { secrets: [newSecret()] }
  const open = async () => {
    const location = isCluster
      ? cluster({ redis: { nodes }, partitions, deadlineMs })
      : { redis: `redis://${nodes[0]}`, deadlineMs }
    const store = new SessionStore({ ...location, janitor: 'elsewhere', tokens: signing })
    context.defer(() => store.close())
    await store.ready()
    return store
  }
  const stores = await Promise.all(Array.from({ length: clients }, open))
  const users = Array.from({ length: SESSIONS }, (_, index) => `user-${index}`)
  const logins = users.map((user, index) => stores[index % clients]?.login(user))
  const tokens = (await Promise.all(logins)).flatMap((session) => session?.token ?? [])
  const watched: Watched[] = []
  for (const server of servers) {
    const monitor = await RedisMonitor.connect(server.url)
    context.defer(() => monitor.close())
    watched.push({ server, monitor })
  }
  return { nodes: watched, stores, tokens, nextItem: skewedItems(ITEMS, seededRandom(SEED)) }
}

/**
 * Records views for `seconds`, with `inFlight` concurrent calls, and measures the resources that they use.
 *
 * @returns figures per view, of all nodes together.
 * @throws the error of a call; the reason of `signal`.
 */
export async function measureViews(
  views: Views,
  { inFlight, seconds, signal }: { inFlight: number; seconds: number; signal: AbortSignal },
) {
  const read = () => Promise.all(views.nodes.map(readingOf))
  const before = await read()
  const ownBefore = process.cpuUsage()
  const begun = performance.now()
  const count = await recordViews(views, { inFlight, until: begun + seconds * 1_000, signal })
  const elapsed = (performance.now() - begun) / 1_000
  const own = process.cpuUsage(ownBefore)
  const after = await read()
  const differences = (of: (reading: Reading) => number) =>
    after.map((reading, index) => of(reading) - of(before[index] as Reading))
  const perView = (of: (reading: Reading) => number) =>
    differences(of).reduce((sum, one) => sum + one, 0) / count
  const main = ({ cpu }: Reading) => cpu.mainCpuSeconds * 1e6
  return {
    viewsPerSecond: count / elapsed,
    mainCpuMicros: perView(main),
    busiestMicros: Math.max(...differences(main)) / count,
    otherCpuMicros: perView(({ cpu }) => (cpu.cpuSeconds - cpu.mainCpuSeconds) * 1e6),
    clientCpuMicros: (own.user + own.system) / count,
    batches: perView(({ info }) => info.reads),
    commands: perView(({ info }) => info.commands),
    bytesIn: perView(({ info }) => info.netInputBytes),
    bytesOut: perView(({ info }) => info.netOutputBytes),
  }
}

interface Reading {
  cpu: CpuReading
  info: RedisReading
}

const readingOf = async ({ server, monitor }: Watched): Promise<Reading> => ({
  info: await monitor.read(),
  cpu: await server.cpu(),
})

async function recordViews(
  { stores, tokens, nextItem }: Views,
  { inFlight, until, signal }: { inFlight: number; until: number; signal: AbortSignal },
): Promise<number> {
  let count = 0
  const caller = async (store: SessionStore) => {
    do {
      const token = tokens[count++ % tokens.length] ?? ''
      await store.recordView(token, nextItem())
    } while (performance.now() < until && !signal.aborted)
  }
  const callers = Array.from({ length: inFlight }, (_, index) => stores[index % stores.length])
  await Promise.all(callers.map((store) => store && caller(store)))
  signal.throwIfAborted()
  return count
}
