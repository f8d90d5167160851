import { longLivedConnection, parseInfo, type ServerLocation } from '@onetrip/session-store'
import type { FastifyBaseLogger } from 'fastify'
import { INFO_SECTIONS, type RedisInfo } from './redis-info.ts'

export interface RedisNodeOptions {
  /** Where it is. The user needs INFO, and in a cluster CLUSTER SHARDS. */
  server: ServerLocation
  /** How the metrics and the log call it. */
  name: string
  intervalSeconds: number
  /** How long one reply may take. */
  deadlineMs: number
  log: Pick<FastifyBaseLogger, 'info' | 'warn'>
}

export interface RedisNode {
  /** The last reply to INFO; undefined while the server is away. */
  readonly info: RedisInfo | undefined
  /** The reply to CLUSTER SHARDS; undefined without a cluster. Never rejects. */
  shards(): Promise<unknown>
  stop(): void
}

/**
 * Asks one server for INFO, now and after each interval, on a connection of its own. Not asked when metrics
 * are read, since INFO takes Redis time and readers may be many.
 *
 * While the server is away nothing is thrown, and one line is logged; another when it is back. Keeps no
 * process alive.
 */
export function pollNode(options: RedisNodeOptions): RedisNode {
  const { server, name: node, intervalSeconds, deadlineMs, log } = options
  const redis = longLivedConnection(server, deadlineMs)
  let latest: RedisInfo | undefined
  let lastError: unknown
  let wasUp = true
  let stopped = false
  let next: NodeJS.Timeout | undefined

  redis.on('error', (error) => {
    lastError = error
  })
  redis.on('ready', () => void poll())
  redis.on('close', () => tell(undefined))
  redis.connect().catch(() => tell(undefined)) // ioredis tries again by itself

  async function poll(): Promise<void> {
    const reply = await ask(() => redis.info(...INFO_SECTIONS))
    tell(reply === undefined ? undefined : parseInfo(reply))
    clearTimeout(next) // of the connection before
    if (!stopped) next = setTimeout(poll, intervalSeconds * 1000).unref()
  }

  async function ask<Reply>(command: () => Promise<Reply>): Promise<Reply | undefined> {
    if (redis.status !== 'ready') return undefined
    const { stream } = redis
    const deadline = setTimeout(() => stream.destroy(new Error('no reply')), deadlineMs)
    try {
      return await command()
    } catch (error) {
      lastError = error
      return undefined
    } finally {
      clearTimeout(deadline)
    }
  }

  function tell(info: RedisInfo | undefined): void {
    latest = info
    if (stopped || wasUp === (info !== undefined)) return
    wasUp = info !== undefined
    if (wasUp) log.info({ node }, 'Redis answers again')
    else log.warn({ node, err: lastError }, 'Redis does not answer')
  }

  return {
    get info() {
      return latest
    },
    shards: () => ask(() => redis.cluster('SHARDS') as Promise<unknown>),
    stop() {
      stopped = true
      clearTimeout(next)
      redis.disconnect()
    },
  }
}
