import type { Redis } from 'ioredis'
import { shortConnection } from '../connections/client.ts'
import { redisAddress } from '../connections/redis-url.ts'
import { publishConnection } from '../diagnostics.ts'
import { notSent } from '../outcomes.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from '../strategy-options.ts'
import type { Sender } from './sender.ts'
import { oneByOne } from './wires.ts'

/**
 * What the source articles warn of: every update opens a connection, sends one command per round trip and
 * closes the connection.
 *
 * @param lean False: as an application would write it, with ioredis's defaults (HELLO, client info, INFO
 *   as a ready check) and its graceful end (`quit`), but no retries. True: the client sends nothing by
 *   itself when it connects, the least that a connection for each request can cost.
 * @throws TypeError unless there is a URL and no client.
 */
export function shortConnections(options: StrategyOptions, lean: boolean): Sender {
  const { url, client, deadlineMs = DEFAULT_DEADLINE_MS } = options
  if (url === undefined || client !== undefined) {
    throw new TypeError('the naive strategies open connections: they need a URL, and no client')
  }
  const address = redisAddress(url, options.tls)
  // Before the store's own deadline, since a connection tells better what happened.
  const connectionMs = Math.ceil(0.9 * deadlineMs)
  const connections = new Set<Redis>()

  return {
    name: oneByOne.name,
    async send({ commands }) {
      const redis = shortConnection(address, connectionMs, lean)
      connections.add(redis)
      const timer = setTimeout(() => close(redis), connectionMs)
      redis.on('connect', publishConnection)
      redis.once('end', () => {
        clearTimeout(timer)
        connections.delete(redis)
      })
      try {
        await connect(redis)
        const outcomes = await oneByOne.send(redis, commands)
        // Redis closes the connection then: the side that closes first keeps its port in TIME_WAIT.
        await redis.quit().catch(() => close(redis))
        return outcomes
      } catch (error) {
        close(redis)
        throw error
      }
    },
    async close() {
      for (const redis of connections) close(redis)
    },
  }
}

async function connect(redis: Redis): Promise<void> {
  let reason: unknown
  redis.on('error', (error) => {
    reason = error
  })
  try {
    await redis.connect()
  } catch (error) {
    throw notSent('no connection could be opened', reason ?? error)
  }
}

/** Closes what is still open. After an attempt that failed, `disconnect()` would keep a timer of 2 s. */
function close(redis: Redis): void {
  if (redis.status !== 'end') redis.disconnect()
}
