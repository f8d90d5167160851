import type { ConnectionOptions } from 'node:tls'
import { longLivedConnection } from '@onetrip/session-store'

export interface InvalidationsOptions {
  /** Of Redis, as the store's. The user needs `CLIENT TRACKING`, `CLIENT ID`, and the channel below. */
  url: string
  tls?: ConnectionOptions | undefined
  /** Of the keys. */
  prefix: string
  /** How often the connection is checked, in milliseconds. */
  checkEveryMs: number
  /** How long connecting, or the answer to a check, may take, in milliseconds. */
  deadlineMs: number
  /** These keys were changed or have expired; undefined: all, as after FLUSHALL. */
  onChange(keys: readonly string[] | undefined): void
  /** Changes are missed from now on, or have been. */
  onLost(): void
}

export interface Invalidations {
  /**
   * Whether all changes have been reported, except those of the last `checkEveryMs` plus `deadlineMs`: a
   * connection that is dead, or a process that was stopped, does not see later ones.
   */
  readonly complete: boolean
  close(): void
}

const CHANNEL = '__redis__:invalidate'

/** If Redis refuses the tracking, as to a user who may not. */
const TRY_AGAIN_MS = 1_000

/**
 * Reports which keys change, by Redis's client-side caching in the broadcasting mode: Redis reports every change
 * of a key with the prefix, whoever read it and whatever connection they used.
 *
 * One connection of its own, in RESP2: ioredis 6 drops the invalidations of RESP3. It redirects the messages to
 * itself, so tracking and subscription end together; with two connections one could be lost unnoticed.
 */
export function watchInvalidations(options: InvalidationsOptions): Invalidations {
  const { url, tls, prefix, checkEveryMs, deadlineMs, onChange, onLost } = options
  const redis = longLivedConnection(url, deadlineMs, tls)
  redis.options.autoResubscribe = false // once subscribed, it could no longer turn the tracking on
  /** When the check was sent that was answered last; undefined: there is no tracking. */
  let completeUntil: number | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  redis.on('error', () => {}) // it reconnects
  redis.on('ready', () => void track())
  redis.on('close', lost)
  redis.on('messageBuffer', (_channel: Buffer, keys: unknown) => {
    onChange(Array.isArray(keys) ? keys.map(String) : undefined)
  })
  redis.connect().catch(() => {})

  async function track(): Promise<void> {
    const { stream } = redis
    try {
      const sentAt = performance.now()
      const id = await redis.client('ID')
      await redis.client('TRACKING', 'ON', 'REDIRECT', id, 'BCAST', 'PREFIX', prefix)
      await redis.subscribe(CHANNEL)
      completeUntil = sentAt
      timer = setTimeout(check, checkEveryMs).unref()
    } catch {
      if (!closed) timer = setTimeout(() => stream.destroy(), TRY_AGAIN_MS).unref()
    }
  }

  async function check(): Promise<void> {
    const { stream } = redis
    const sentAt = performance.now()
    const late = setTimeout(() => stream.destroy(), deadlineMs).unref()
    try {
      await redis.ping()
      completeUntil = sentAt
      timer = setTimeout(check, checkEveryMs).unref()
    } catch {
      // `lost` follows
    } finally {
      clearTimeout(late)
    }
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
