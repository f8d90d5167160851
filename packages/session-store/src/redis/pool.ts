import type { Socket } from 'node:net'
import type { Redis } from 'ioredis'
import { publishConnections, publishRoundTrip } from '../diagnostics.ts'
import {
  checkedRedisOptions,
  DEADLINES_UNTIL_STALLED,
  longLivedConnection,
  type RedisOptions,
  shortLivedConnection,
} from './connection.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import { notSent } from './outcomes.ts'
import type { Sender } from './sender.ts'
import { subscribeWith } from './subscribing.ts'
import { isWritable, sendWith } from './write-frame.ts'

export interface PoolOptions {
  redis: string | RedisOptions
  /** How many connections to open. */
  poolSize: number
  deadlineMs: number
}

interface Connection {
  readonly redis: Redis
  /** Lists of commands that are waiting for replies. */
  inFlight: number
  lastError: unknown
  opened: number
}

/**
 * Sends each list of commands as one frame (write-frame.ts) over the ready connection with the least in flight. Opens the
 * connections when it first sends something.
 *
 * @throws TypeError if the location is invalid, or an option is not supported.
 */
export function pooled({ redis: location, poolSize, deadlineMs }: PoolOptions): Sender {
  const sendTo = sendWith()
  const stalls = new Deadlines(DEADLINES_UNTIL_STALLED * deadlineMs)
  const options = checkedRedisOptions(location)
  const pool = Array.from({ length: poolSize }, () =>
    watched(longLivedConnection(options, deadlineMs)),
  )
  let next = 0
  let isClosed = false

  /** Round robin between connections with equally many in flight. */
  function leastUsed(): Connection | undefined {
    let best: Connection | undefined
    for (let tried = 0; tried < pool.length; tried++) {
      const one = pool[(next + tried) % pool.length] as Connection
      if (!isWritable(one.redis)) continue
      if (best === undefined || one.inFlight < best.inFlight) best = one
    }
    if (best) next = (pool.indexOf(best) + 1) % pool.length
    return best
  }

  function noConnection(): Error {
    for (const { redis } of pool) {
      // After a failover, ioredis may give up ('end') although it should reconnect. 'error' has the reason.
      if (['wait', 'end'].includes(redis.status)) redis.connect().catch(() => undefined)
    }
    const failed = pool.find(({ lastError }) => lastError !== undefined)
    return notSent('there is no connection', failed?.lastError)
  }

  return {
    name: 'pool',
    async send({ commands }) {
      if (isClosed) throw notSent('the pool is closed')
      const one = leastUsed()
      if (!one) throw noConnection()
      one.inFlight++
      const stall = new Stall(one.redis)
      stalls.start(stall)
      try {
        publishRoundTrip(commands.length)
        return await sendTo(one.redis, commands)
      } finally {
        stalls.stop(stall)
        one.inFlight--
      }
    },
    connections: () => ({
      connections: pool.length,
      ready: pool.filter(({ redis }) => isWritable(redis)).length,
      opened: pool.reduce((sum, { opened }) => sum + opened, 0),
      server: serverOf(pool[0]?.redis),
    }),
    subscribe: (...subscription) =>
      subscribeWith(shortLivedConnection(options, deadlineMs), ...subscription),
    async close() {
      isClosed = true
      await Promise.all(pool.map(({ redis }) => disconnect(redis)))
    },
  }
}

/** Keeps the last error of a client, and publishes when a connection opens and when it ends. */
function watched(redis: Redis): Connection {
  const connection: Connection = { redis, inFlight: 0, lastError: undefined, opened: 0 }
  redis.on('connect', () => connection.opened++)
  redis.on('error', (error) => {
    // After a connection has closed, ioredis also emits errors for the commands of its handshake.
    if (redis.status !== 'reconnecting' || !connection.lastError) connection.lastError = error
  })
  publishConnections(redis)
  return connection
}

function serverOf(redis: Redis | undefined): string {
  const { path, host, port, sentinels } = redis?.options ?? {}
  if (!sentinels) return path ?? `${host}:${port}`
  const { remoteAddress, remotePort } = (redis?.stream ?? {}) as Partial<Socket>
  return `${remoteAddress}:${remotePort}`
}

/** Reopens a connection. Without this, TCP would detect a vanished peer only after about 15 minutes. */
class Stall extends Deadline {
  readonly #redis: Redis

  constructor(redis: Redis) {
    super()
    this.#redis = redis
  }

  override onLate(): void {
    // Not disconnect(), which waits until the peer closes the connection, too.
    this.#redis.stream?.destroy(new Error('no reply for too long'))
  }
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
