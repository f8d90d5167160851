import type { Socket } from 'node:net'
import type { Redis } from 'ioredis'
import { publishRoundTrip } from '../diagnostics.ts'
import type { Server } from './client.ts'
import { type ClientWatch, watchClient } from './client-watch.ts'
import { Deadlines } from './deadlines.ts'
import { sendWith } from './frame.ts'
import { DEADLINES_UNTIL_STALLED } from './handshake.ts'
import { notSent } from './outcomes.ts'
import type { Sender } from './sender.ts'
import { subscribeWith } from './subscribing.ts'

export interface PoolOptions {
  server: Server
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
 * Sends each list of commands as one frame (frame.ts) over the ready connection with the least in flight. Opens the
 * connections when it first sends something.
 */
export function pooled({ server, poolSize, deadlineMs }: PoolOptions): Sender {
  const sendTo = sendWith()
  const stalledAfterMs = DEADLINES_UNTIL_STALLED * deadlineMs
  const stalls = new Deadlines(stalledAfterMs)
  const pool = Array.from({ length: poolSize }, (): PooledClient => {
    const redis = server.shared(deadlineMs)
    return { redis, watch: watchClient(redis, stalledAfterMs), inFlight: 0 }
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
      // After a failover, ioredis may give up ('end') although it should reconnect. The watch has the error.
      if (['wait', 'end'].includes(redis.status)) redis.connect().catch(() => undefined)
    }
    const failed = pool.find(({ watch }) => watch.lastError !== undefined)
    return notSent('there is no connection', failed?.watch.lastError)
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
    subscribe: (...subscription) => subscribeWith(server.short(deadlineMs), ...subscription),
    async close() {
      isClosed = true
      await Promise.all(pool.map(({ redis }) => disconnect(redis)))
      for (const { redis, watch } of pool) {
        watch.stop()
        // ioredis prints errors if there is no listener.
        redis.on('error', () => {})
      }
    },
  }
}

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

interface Closable {
  readonly status: string
  disconnect(): void
  once(event: 'end', onEnd: () => void): unknown
}

/** Closes a client of ioredis that does not belong to the application. Resolves when it is closed. */
export async function disconnect(client: Closable): Promise<void> {
  // Without an open socket no 'end' follows: disconnect() only cancels the next attempt to connect.
  if (['wait', 'reconnecting', 'close', 'end'].includes(client.status)) return client.disconnect()
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  client.disconnect()
  await ended
}
