import type { ConnectionOptions } from 'node:tls'
import { longLivedConnection, parseInfo } from '@onetrip/session-store'
import type { FastifyBaseLogger } from 'fastify'
import type { Registry } from 'prom-client'
import { INFO_SECTIONS, type RedisInfo, redisMetrics } from './redis-info.ts'

export interface RedisPollerOptions {
  /** Of Redis, as the store takes it. The user needs INFO, and nothing else once connected. */
  url: string
  /** As the store's option. */
  tls?: ConnectionOptions | undefined
  intervalSeconds: number
  /** How long one reply may take. */
  deadlineMs: number
  registry: Registry
  log: Pick<FastifyBaseLogger, 'info' | 'warn'>
}

/**
 * Asks Redis for INFO, now and after each interval, on a connection of its own, and serves the last
 * reply as metrics. One per group of processes is enough: it is the same Redis. Not asked when metrics
 * are read, since INFO takes Redis time and readers may be many.
 *
 * While Redis is away nothing is thrown, and one line is logged; another when it is back. Keeps no
 * process alive.
 *
 * @returns What ends it.
 * @throws TypeError when the URL is unusable.
 */
export function pollRedis(options: RedisPollerOptions): () => void {
  const { url, intervalSeconds, deadlineMs, registry, log } = options
  const redis = longLivedConnection(url, deadlineMs, options.tls)
  let latest: RedisInfo | undefined
  let lastError: unknown
  let wasUp = true
  let stopped = false
  let next: NodeJS.Timeout | undefined

  redisMetrics(registry, () => latest)
  redis.on('error', (error) => {
    lastError = error
  })
  redis.on('ready', () => void poll())
  redis.on('close', () => tell(undefined))
  redis.connect().catch(() => tell(undefined)) // ioredis tries again by itself

  async function poll(): Promise<void> {
    if (redis.status === 'ready') {
      const deadline = setTimeout(() => redis.stream.destroy(new Error('no reply')), deadlineMs)
      try {
        tell(parseInfo(await redis.info(...INFO_SECTIONS)))
      } catch (error) {
        lastError = error
        tell(undefined)
      } finally {
        clearTimeout(deadline)
      }
    }
    clearTimeout(next) // of the connection before
    if (!stopped) next = setTimeout(poll, intervalSeconds * 1000).unref()
  }

  function tell(info: RedisInfo | undefined): void {
    latest = info
    if (stopped || wasUp === (info !== undefined)) return
    wasUp = info !== undefined
    if (wasUp) log.info('Redis answers again')
    else log.warn({ err: lastError }, 'Redis does not answer')
  }

  return () => {
    stopped = true
    clearTimeout(next)
    redis.disconnect()
  }
}
