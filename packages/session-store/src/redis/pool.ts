import type { Socket } from 'node:net'
import { type Cluster, Redis } from 'ioredis'
import { publishRoundTrip } from '../diagnostics.ts'
import { type Server, safeRedisOptions } from './client.ts'
import { checkClient } from './client-check.ts'
import { type ClientWatch, watchClient } from './client-watch.ts'
import { Deadlines } from './deadlines.ts'
import { sendWith } from './frame.ts'
import { DEADLINES_UNTIL_STALLED } from './handshake.ts'
import { notSent } from './outcomes.ts'
import type { Sender } from './sender.ts'
import { subscribeWith } from './subscribing.ts'

export interface PoolOptions {
  /** Where the pool opens connections. */
  server?: Server | undefined
  /** Existing clients to use instead; the pool does not close them. */
  clients: readonly Redis[]
  /** How many connections to open. */
  poolSize: number
  deadlineMs: number
}

interface PooledClient {
  readonly redis: Redis
  readonly watch: ClientWatch
  /** Lists of commands that are waiting for replies. */
  inFlight: number
}

/**
 * Sends each list of commands over the ready connection with the least in flight, as one frame (frame.ts). Opens the connections when it first
 * sends something.
 *
 * @throws TypeError if a client has unsupported options.
 */
export function pooled(options: PoolOptions): Sender {
  const { server, clients, poolSize, deadlineMs } = options
  const opened = server
    ? Array.from({ length: poolSize }, () => server.shared(deadlineMs))
    : undefined
  const all = opened ?? clients
  for (const redis of all) checkClient(redis)
  const sendTo = sendWith(all.every((redis) => redis instanceof Redis))
  const stalledAfterMs = DEADLINES_UNTIL_STALLED * deadlineMs
  const stalls = new Deadlines(stalledAfterMs)
  const isOwn = opened !== undefined
  const pool = all.map((redis): PooledClient => {
    return { redis, watch: watchClient(redis, { stalledAfterMs, isOwn }), inFlight: 0 }
  })
  let next = 0
  let isClosed = false

  /** Round robin between connections with equally many in flight. */
  function leastUsed(): PooledClient | undefined {
    let best: PooledClient | undefined
    for (let tried = 0; tried < pool.length; tried++) {
      const one = pool[(next + tried) % pool.length] as PooledClient
      if (!one.watch.isReady) continue
      if (best === undefined || one.inFlight < best.inFlight) best = one
    }
    if (best) next = (pool.indexOf(best) + 1) % pool.length
    return best
  }

  function noConnection(): Error {
    for (const { redis } of pool) {
      if (redis.status === 'wait') redis.connect().catch(() => undefined) // the watch has the error
    }
    const isEnded = pool.every(({ redis }) => redis.status === 'end')
    const failed = pool.find(({ watch }) => watch.lastError !== undefined)
    return notSent(
      isEnded ? 'the client is closed' : 'there is no connection',
      failed?.watch.lastError,
    )
  }

  const send: Sender['send'] = async ({ commands }) => {
    if (isClosed) throw notSent('the pool is closed')
    const one = leastUsed()
    if (!one) throw noConnection()
    one.inFlight++
    const late = stalls.start(() => reopen(one.redis))
    try {
      publishRoundTrip(commands.length)
      return await sendTo(one.redis, commands)
    } finally {
      stalls.stop(late)
      one.inFlight--
    }
  }

  return {
    name: 'batch',
    send,
    connections: () => ({
      connections: pool.length,
      ready: pool.filter(({ watch }) => watch.isReady).length,
      server: serverOf(pool[0]?.redis),
    }),
    subscribe(...subscription) {
      const redis = server?.short(deadlineMs) ?? shortCopy(clients[0] as Redis)
      const { ping, ...others } = subscribeWith(redis, ...subscription)
      return {
        ...others,
        async ping() {
          await ping()
          const ready = pool.filter(({ watch }) => watch.isReady)
          if (ready.every((one) => serverOf(one.redis) === serverOf(redis))) return
          throw new Error('the pool is connected to another primary')
        },
      }
    },
    async close() {
      isClosed = true
      if (isOwn) await Promise.all(pool.map(({ redis }) => disconnect(redis)))
      for (const { redis, watch } of pool) {
        watch.stop()
        // ioredis prints errors if there is no listener.
        if (isOwn) redis.on('error', () => {})
      }
    },
  }
}

const shortCopy = (client: Redis): Redis =>
  client.duplicate({ ...safeRedisOptions, lazyConnect: true, retryStrategy: null })

function serverOf(redis: Redis | undefined): string {
  const { path, host, port, sentinels } = redis?.options ?? {}
  if (!sentinels) return path ?? `${host}:${port}`
  const { remoteAddress, remotePort } = (redis?.stream ?? {}) as Partial<Socket>
  return `${remoteAddress}:${remotePort}`
}

/** Without this, TCP would detect a vanished peer only after about 15 minutes. */
function reopen(redis: Redis): void {
  // Not disconnect(), which waits until the peer closes the connection, too.
  redis.stream?.destroy(new Error('no reply for too long'))
}

/** Closes a connection that this package opened. Resolves when it is closed. */
export async function disconnect(client: Redis | Cluster): Promise<void> {
  // Without an open socket no 'end' follows: disconnect() only cancels the next attempt to connect.
  if (['wait', 'reconnecting', 'close', 'end'].includes(client.status)) return client.disconnect()
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  client.disconnect()
  await ended
}
