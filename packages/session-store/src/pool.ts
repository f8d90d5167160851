import { once } from 'node:events'
import type { Redis } from 'ioredis'
import { longLivedConnection } from './connection.ts'
import { publishConnection } from './diagnostics.ts'
import { notSent, overloaded } from './send.ts'

interface Slot {
  readonly redis: Redis
  inFlight: number
}

/** A fixed set of long-lived connections that a process shares. */
export class Pool {
  readonly #slots: readonly Slot[]
  readonly #maxInFlight: number
  #next = 0
  #closed = false
  #lastError: unknown
  #idle: (() => void) | undefined

  /** Opens nothing yet: `ready()` connects. */
  constructor(options: {
    url: string
    size: number
    maxInFlight: number
    connectTimeoutMs: number
  }) {
    this.#maxInFlight = options.maxInFlight
    this.#slots = Array.from({ length: options.size }, () => {
      const redis = longLivedConnection(options.url, options.connectTimeoutMs)
      redis.on('error', (error) => {
        this.#lastError = error
      })
      redis.on('connect', publishConnection)
      return { redis, inFlight: 0 }
    })
  }

  /**
   * Connects all, and waits for all.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` when they are not connected after `timeoutMs`.
   */
  async ready(timeoutMs: number): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      await Promise.all(this.#slots.map(({ redis }) => connected(redis, signal)))
    } catch {
      throw notSent(`no connection after ${timeoutMs / 1000} s`, this.#lastError)
    }
  }

  /**
   * Lends the next connection that is up to `work`, until its promise is settled.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` when none is up, `ONETRIP_OVERLOADED` when all are full.
   */
  use<Result>(work: (redis: Redis) => Promise<Result>): Promise<Result> {
    if (this.#closed) return Promise.reject(notSent('the pool is closed'))
    let connectedSlots = 0
    for (let tried = 0; tried < this.#slots.length; tried++) {
      const slot = this.#slots[this.#next++ % this.#slots.length]
      if (slot?.redis.status !== 'ready') continue
      connectedSlots++
      if (slot.inFlight < this.#maxInFlight) return this.#lend(slot, work)
    }
    return Promise.reject(
      connectedSlots === 0
        ? notSent('there is no connection', this.#lastError)
        : overloaded(connectedSlots * this.#maxInFlight),
    )
  }

  /** Waits until nothing is in flight (at most `graceMs`), then closes every connection. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true
    if (this.#slots.some(({ inFlight }) => inFlight > 0)) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#idle = resolve
      const timer = setTimeout(resolve, graceMs)
      await promise
      clearTimeout(timer)
    }
    await Promise.all(this.#slots.map(({ redis }) => disconnect(redis)))
  }

  async #lend<Result>(slot: Slot, work: (redis: Redis) => Promise<Result>): Promise<Result> {
    slot.inFlight++
    try {
      return await work(slot.redis)
    } finally {
      slot.inFlight--
      if (this.#idle && this.#slots.every(({ inFlight }) => inFlight === 0)) this.#idle()
    }
  }
}

async function connected(redis: Redis, signal: AbortSignal): Promise<void> {
  if (redis.status === 'wait') redis.connect().catch(() => undefined) // told by the 'error' event
  // ioredis emits 'error' for each attempt that failed, which must not end the wait.
  while (redis.status !== 'ready') {
    const next = new AbortController()
    const any = AbortSignal.any([signal, next.signal])
    try {
      await Promise.race([
        once(redis, 'ready', { signal: any }).catch((error: unknown) => {
          if (signal.aborted) throw error
        }),
        once(redis, 'close', { signal: any }).catch(() => undefined),
      ])
    } finally {
      next.abort()
    }
    signal.throwIfAborted()
  }
}

async function disconnect(redis: Redis): Promise<void> {
  // Where no socket is open no 'end' follows: this only cancels the next attempt to connect.
  if (['wait', 'reconnecting', 'close', 'end'].includes(redis.status)) return redis.disconnect()
  const ended = new Promise<void>((resolve) => redis.once('end', () => resolve()))
  redis.disconnect()
  await ended
}
