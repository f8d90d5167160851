import { connectionTo, type RedisLocation } from '@onetrip/api'

/**
 * Address of Redis; a cluster is not supported. The Redis user needs permission for `CLIENT TRACKING`,
 * `CLIENT ID` and the channel below.
 */
export interface InvalidationsOptions extends RedisLocation {
  /** Prefix of the watched keys. */
  prefix: string
  /** Interval of connection checks, in milliseconds. */
  checkEveryMs: number
  /** Timeout for connecting and for a check, in milliseconds. */
  deadlineMs: number
  /** Called when these keys were changed or have expired; undefined: all keys, for example after FLUSHALL. */
  onChange(keys: readonly string[] | undefined): void
  /** Called when changes may have been missed. */
  onLost(): void
  /** Called when Redis rejects tracking, for example for lack of permission. Retried every second. */
  onRejected?(error: Error): void
}

export interface Invalidations {
  /**
   * Whether all changes were reported up to `checkEveryMs` plus `deadlineMs` ago. Later ones may be missing
   * if the connection is dead or the process was stopped.
   */
  readonly complete: boolean
  close(): void
}

const CHANNEL = '__redis__:invalidate'

const RETRY_MS = 1_000

/**
 * Reports changed keys with Redis client-side caching in broadcasting mode: Redis reports every change of a
 * key with the prefix, also of keys read on other connections.
 *
 * Uses a dedicated RESP2 connection, because ioredis 6 drops invalidation messages of RESP3. The connection
 * redirects the messages to itself, so that tracking and subscription end together. With two connections,
 * losing the tracking connection would go unnoticed.
 */
export function watchInvalidations(options: InvalidationsOptions): Invalidations {
  const { prefix, checkEveryMs, deadlineMs, onChange, onLost, onRejected = () => {} } = options
  const redis = connectionTo(options, deadlineMs)
  redis.options.autoResubscribe = false // a subscribed RESP2 connection cannot send CLIENT TRACKING
  /** Send time of the last request that was answered; undefined: tracking is off. */
  let completeUntil: number | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  redis.on('error', () => {}) // ioredis reconnects
  redis.on('ready', () => void track())
  redis.on('close', lost)
  redis.on('messageBuffer', (_channel: Buffer, keys: unknown) => {
    onChange(Array.isArray(keys) ? keys.map(String) : undefined)
  })
  redis.connect().catch(() => {})

  async function track(): Promise<void> {
    const { stream } = redis
    try {
      await confirmed(async () => {
        const id = await redis.client('ID')
        await redis.client('TRACKING', 'ON', 'REDIRECT', id, 'BCAST', 'PREFIX', prefix)
        await redis.subscribe(CHANNEL)
      })
    } catch (error) {
      if (closed) return
      if ((error as Error).name === 'ReplyError') onRejected(error as Error)
      timer = setTimeout(() => stream.destroy(), RETRY_MS).unref()
    }
  }

  /** A failure closes the connection, which calls `lost`. */
  const check = () => confirmed(() => redis.ping()).catch(() => {})

  /** If Redis answers in time, no change was missed before the request was sent. */
  async function confirmed(request: () => Promise<unknown>): Promise<void> {
    const { stream } = redis
    const sentAt = performance.now()
    const late = setTimeout(() => stream.destroy(), deadlineMs).unref()
    try {
      await request()
    } finally {
      clearTimeout(late)
    }
    completeUntil = sentAt
    timer = setTimeout(check, checkEveryMs).unref()
  }

  function lost(): void {
    clearTimeout(timer)
    completeUntil = undefined
    onLost()
  }

  return {
    get complete() {
      if (completeUntil === undefined) return false
      if (performance.now() - completeUntil <= checkEveryMs + deadlineMs) return true
      onLost()
      return false
    },
    close() {
      closed = true
      clearTimeout(timer)
      redis.disconnect()
    },
  }
}
