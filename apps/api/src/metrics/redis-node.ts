import { parseInfo } from '@onetrip/session-store'
import type { FastifyBaseLogger } from 'fastify'
import { connectionTo, type RedisLocation } from '../redis-location.ts'
import { INFO_SECTIONS, type RedisInfo } from './redis-info.ts'

export interface RedisNodeOptions {
  /** Address. The Redis user needs permission for INFO and, in a cluster, CLUSTER SHARDS. */
  server: RedisLocation
  /** Name in metrics and log lines. */
  name: string
  intervalSeconds: number
  /** Timeout of a command, in milliseconds. */
  deadlineMs: number
  log: Pick<FastifyBaseLogger, 'info' | 'warn'>
  /** Called after each INFO. */
  onInfo?(node: RedisNode): Promise<void>
}

export interface RedisNode {
  /** Latest INFO; undefined while the server is down. */
  readonly info: RedisInfo | undefined
  /** Reply to CLUSTER SHARDS; undefined without a cluster or if the command fails. Never rejects. */
  shards(): Promise<unknown>
  stop(): void
}

/**
 * Polls one server with INFO on a dedicated connection: at once, then after each interval. A scrape of the
 * metrics sends no INFO, since INFO takes CPU time of Redis and there may be many scrapers.
 *
 * Throws no errors while the server is down. Logs one line when it goes down and one when it is up again.
 * Does not keep the process alive.
 */
export function pollNode(options: RedisNodeOptions): RedisNode {
  const { server, name: node, intervalSeconds, deadlineMs, log } = options
  const redis = connectionTo(server, deadlineMs)
  let latest: RedisInfo | undefined
  let lastError: unknown
  let wasUp = true
  let stopped = false
  let next: NodeJS.Timeout | undefined

  redis.on('error', (error) => {
    lastError = error
  })
  redis.on('ready', () => void poll())
  redis.on('close', () => update(undefined))
  redis.connect().catch(() => update(undefined)) // ioredis reconnects

  async function poll(): Promise<void> {
    const reply = await send(() => redis.info(...INFO_SECTIONS))
    update(reply === undefined ? undefined : parseInfo(reply))
    if (latest && !stopped) void options.onInfo?.(self)
    clearTimeout(next) // set by the previous connection
    if (!stopped) next = setTimeout(poll, intervalSeconds * 1000).unref()
  }

  async function send<Reply>(command: () => Promise<Reply>): Promise<Reply | undefined> {
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

  function update(info: RedisInfo | undefined): void {
    latest = info
    if (stopped || wasUp === (info !== undefined)) return
    wasUp = info !== undefined
    if (wasUp) log.info({ node }, 'Redis answers again')
    else log.warn({ node, err: lastError }, 'Redis does not answer')
  }

  const self: RedisNode = {
    get info() {
      return latest
    },
    shards: () => send(() => redis.cluster('SHARDS') as Promise<unknown>),
    stop() {
      stopped = true
      clearTimeout(next)
      redis.disconnect()
    },
  }
  return self
}
