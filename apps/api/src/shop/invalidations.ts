import { longLivedConnection, type ServerLocation } from '@onetrip/session-store'

/**
 * Where Redis is, as the store's; not a cluster. The user needs `CLIENT TRACKING`, `CLIENT ID`, and the
 * channel below.
 */
export interface InvalidationsOptions extends ServerLocation {
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
  /** Redis refuses the tracking, as to a user without the permission. It is tried again every second. */
  onRefused?(error: Error): void
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

const TRY_AGAIN_MS = 1_000

/**
 * Reports which keys change, by Redis's client-side caching in broadcasting mode: Redis reports every change of
 * a key with the prefix, on whatever connection it was read.
 *
 * It uses one connection of its own, in RESP2, because ioredis 6 drops the invalidations of RESP3. The connection
 * redirects the messages to itself, so tracking and subscription end together. With two connections, the loss of
 * the tracking one would go unnoticed.
 */
export function watchInvalidations(options: InvalidationsOptions): Invalidations {
  const { prefix, checkEveryMs, deadlineMs, onChange, onLost, onRefused = () => {} } = options
  const redis = longLivedConnection(options, deadlineMs)
  redis.options.autoResubscribe = false // once subscribed, it could no longer turn the tracking on
  /** When the last answered request was sent; undefined: there is no tracking. */
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
      await confirmed(async () => {
        const id = await redis.client('ID')
        await redis.client('TRACKING', 'ON', 'REDIRECT', id, 'BCAST', 'PREFIX', prefix)
        await redis.subscribe(CHANNEL)
      })
    } catch (error) {
      if (closed) return
      if ((error as Error).name === 'ReplyError') onRefused(error as Error)
      timer = setTimeout(() => stream.destroy(), TRY_AGAIN_MS).unref()
    }
  }

  /** If it fails, the connection is lost. */
  const check = () => confirmed(() => redis.ping()).catch(() => {})

  /** Redis answers `ask` in time: until it was sent, no change was missed. */
  async function confirmed(ask: () => Promise<unknown>): Promise<void> {
    const { stream } = redis
    const sentAt = performance.now()
    const late = setTimeout(() => stream.destroy(), deadlineMs).unref()
    try {
      await ask()
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
