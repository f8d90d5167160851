import type { Redis } from 'ioredis'
import { shortConnection } from '../client.ts'
import { publishConnection } from '../diagnostics.ts'
import { notSent, type Outcome, overloaded } from '../outcomes.ts'
import { redisAddress } from '../redis-url.ts'
import { sendOneByOne, withDeadline } from '../send.ts'
import type { Strategy, StrategyName, StrategyOptions } from '../strategy.ts'
import type { Command } from '../updates.ts'
import { strategyOf } from './own.ts'

// The connection's own deadline tells better what happened, so that the other comes a little later.
const LATER_MS = 100

/**
 * What the documents warn of: every update opens a connection, sends one command per round trip and
 * closes it, as an application would write it: ioredis's defaults (HELLO, client info, INFO as a ready
 * check) and its graceful end (`quit`), but no retries.
 */
export const naive = (options: StrategyOptions): Strategy =>
  onShortConnections('naive', options, false)

/**
 * The same with a client that is told to send nothing of its own accord when it connects: the least
 * that a connection for each request can cost.
 */
export const naiveLean = (options: StrategyOptions): Strategy =>
  onShortConnections('naive-lean', options, true)

function onShortConnections(name: StrategyName, options: StrategyOptions, lean: boolean): Strategy {
  const { url, client, deadlineMs = 2_000, maxInFlight = 1_000 } = options
  if (url === undefined || client !== undefined) {
    throw new TypeError(`the strategy ${name} opens connections: it needs a URL, and no client`)
  }
  const address = redisAddress(url, options.tls)
  const open = new Set<Promise<unknown>>()
  const connections = new Set<Redis>()
  let closed = false

  async function onShortConnection(commands: readonly Command[]): Promise<Outcome[]> {
    const redis = shortConnection(address, deadlineMs, lean)
    connections.add(redis)
    const timer = setTimeout(() => close(redis), deadlineMs)
    redis.on('connect', publishConnection)
    redis.once('end', () => {
      clearTimeout(timer)
      connections.delete(redis)
    })
    try {
      await connect(redis)
      const outcomes = await sendOneByOne(redis, commands)
      // Redis closes the connection then: whoever does so first keeps its port in TIME_WAIT.
      await redis.quit().catch(() => close(redis))
      return outcomes
    } catch (error) {
      close(redis)
      throw error
    }
  }

  return strategyOf({
    name,
    async send({ commands, readOnly }) {
      if (closed) throw notSent('the store is closed')
      if (open.size >= maxInFlight) throw overloaded(open.size)
      const work = onShortConnection(commands)
      const settled: Promise<unknown> = work.then(
        () => open.delete(settled),
        () => open.delete(settled),
      )
      open.add(settled)
      return await withDeadline(work, deadlineMs + LATER_MS, readOnly)
    },
    async close() {
      closed = true
      await Promise.all(open)
      for (const redis of connections) close(redis)
    },
  })
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
