import { once } from 'node:events'
import type { ConnectionOptions } from 'node:tls'
import {
  type Client,
  checkClient,
  checkDatabase,
  isCluster,
  longLivedConnection,
  requireDatabase,
} from './client.ts'
import { type ClientWatch, watchClient } from './client-watch.ts'
import { notSent, overloaded } from './outcomes.ts'

interface Slot {
  readonly client: Client
  readonly watch: ClientWatch
  inFlight: number
  /** Its database is being checked: until then it is not used. */
  checking?: Promise<void> | undefined
}

export interface PoolOptions {
  /** As `StrategyOptions.url`: the pool opens and closes its connections. */
  url?: string | undefined
  /** As `StrategyOptions.tls`. */
  tls?: ConnectionOptions | undefined
  /** Connections to use instead of the pool's own. They are not closed. */
  client?: Client | readonly Client[] | undefined
  /** How many connections to open. */
  size: number
  /** Updates in flight on one connection, beyond which one is refused. */
  maxInFlight: number
  connectTimeoutMs: number
  /** A connection that owes a reply for so long is taken for dead and opened anew. */
  stalledAfterMs: number
}

export interface PoolState {
  /** Of the pool, whether up or not. */
  connections: number
  /** Connections that are up. */
  ready: number
  /** Updates that were sent and whose replies are not there. */
  inFlight: number
}

/** A fixed set of long-lived connections that a process shares. */
export class Pool {
  readonly #slots: readonly Slot[]
  readonly #owned: boolean
  readonly #maxInFlight: number
  readonly #stalledAfterMs: number
  #next = 0
  #closed = false
  #idle: (() => void) | undefined

  /**
   * Opens nothing yet: `ready()` connects.
   *
   * @throws TypeError when there is not exactly one of `url` and `client`, or a client is unsafe.
   */
  constructor(options: PoolOptions) {
    const { url, client, size } = options
    if ((url === undefined) === (client === undefined)) {
      throw new TypeError('give either the URL of Redis or an ioredis client')
    }
    this.#maxInFlight = options.maxInFlight
    this.#stalledAfterMs = options.stalledAfterMs
    this.#owned = url !== undefined
    const clients =
      url === undefined
        ? [client as Client | readonly Client[]].flat()
        : Array.from({ length: size }, () =>
            longLivedConnection(url, options.connectTimeoutMs, options.tls),
          )
    if (clients.length === 0) throw new TypeError('give at least one ioredis client')
    for (const client of clients) checkClient(client)
    this.#slots = clients.map((client) => ({ client, watch: watchClient(client), inFlight: 0 }))
    for (const slot of this.#slots) {
      const { client } = slot
      if (this.#owned || isCluster(client)) continue
      requireDatabase(client)
      slot.checking = checkDatabase(client)?.finally(() => {
        slot.checking = undefined
      })
    }
  }

  get state(): PoolState {
    return {
      connections: this.#slots.length,
      ready: this.#slots.filter(({ client }) => client.status === 'ready').length,
      inFlight: this.#slots.reduce((sum, { inFlight }) => sum + inFlight, 0),
    }
  }

  /**
   * Connects all, and waits for all.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` when they are not connected after `timeoutMs`.
   */
  async ready(timeoutMs: number): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      await Promise.all(this.#slots.map((slot) => usable(slot, signal)))
    } catch {
      throw notSent(`no connection after ${timeoutMs / 1000} s`, this.#lastError)
    }
  }

  /**
   * Lends the next connection that is up to `work`, until its promise is settled.
   *
   * @param updates How many updates the work carries.
   * @throws StoreError `ONETRIP_NOT_SENT` when none is up, `ONETRIP_OVERLOADED` when all are full.
   */
  use<Result>(work: (client: Client) => Promise<Result>, updates = 1): Promise<Result> {
    const slot = this.#slotFor(updates)
    if (slot instanceof Error) return Promise.reject(slot)
    this.#next = (this.#slots.indexOf(slot) + 1) % this.#slots.length
    return this.#lend(slot, updates, work)
  }

  /** Why `use` would refuse so many updates now; undefined when it would not. */
  refusal(updates: number): Error | undefined {
    const slot = this.#slotFor(updates)
    return slot instanceof Error ? slot : undefined
  }

  /**
   * Waits until nothing is in flight (at most `graceMs`), then closes the connections that the pool
   * opened.
   */
  async close(graceMs: number): Promise<void> {
    this.#closed = true
    if (this.#slots.some(({ inFlight }) => inFlight > 0)) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#idle = resolve
      const timer = setTimeout(resolve, graceMs)
      await promise
      clearTimeout(timer)
    }
    if (this.#owned) await Promise.all(this.#slots.map(({ client }) => disconnect(client)))
    for (const { client, watch } of this.#slots) {
      watch.release()
      // ioredis prints errors that nobody listens to.
      if (this.#owned) client.on('error', () => {})
    }
  }

  get #lastError(): unknown {
    return this.#slots.find(({ watch }) => watch.lastError !== undefined)?.watch.lastError
  }

  #slotFor(updates: number): Slot | Error {
    if (this.#closed) return notSent('the pool is closed')
    let connectedSlots = 0
    for (let tried = 0; tried < this.#slots.length; tried++) {
      const slot = this.#slots[(this.#next + tried) % this.#slots.length]
      if (slot?.client.status !== 'ready' || slot.checking) continue
      connectedSlots++
      if (slot.inFlight + updates <= this.#maxInFlight) return slot
    }
    return connectedSlots === 0
      ? notSent('there is no connection', this.#lastError)
      : overloaded(connectedSlots * this.#maxInFlight)
  }

  async #lend<Result>(
    slot: Slot,
    updates: number,
    work: (client: Client) => Promise<Result>,
  ): Promise<Result> {
    slot.inFlight += updates
    const stalled = setTimeout(() => reopen(slot.client), this.#stalledAfterMs)
    try {
      return await work(slot.client)
    } finally {
      clearTimeout(stalled)
      slot.inFlight -= updates
      if (this.#idle && this.#slots.every(({ inFlight }) => inFlight === 0)) this.#idle()
    }
  }
}

/** Without this, a peer that vanished would be noticed after TCP's own 15 minutes. */
function reopen(client: Client): void {
  for (const connection of isCluster(client) ? client.nodes() : [client]) {
    // Not disconnect(), which waits for the peer to say goodbye, too.
    connection.stream?.destroy(new Error('no reply for too long'))
  }
}

async function usable({ client, checking }: Slot, signal: AbortSignal): Promise<void> {
  if (checking) await Promise.race([checking, once(signal, 'abort')])
  signal.throwIfAborted()
  await connected(client, signal)
}

async function connected(client: Client, signal: AbortSignal): Promise<void> {
  if (client.status === 'wait') client.connect().catch(() => undefined) // told by the 'error' event
  // ioredis emits 'error' for each attempt that failed, which must not end the wait.
  while (client.status !== 'ready') {
    const next = new AbortController()
    const any = AbortSignal.any([signal, next.signal])
    try {
      await Promise.race([
        once(client, 'ready', { signal: any }).catch((error: unknown) => {
          if (signal.aborted) throw error
        }),
        once(client, 'close', { signal: any }).catch(() => undefined),
      ])
    } finally {
      next.abort()
    }
    signal.throwIfAborted()
  }
}

async function disconnect(client: Client): Promise<void> {
  // Where no socket is open no 'end' follows: this only cancels the next attempt to connect.
  if (['wait', 'reconnecting', 'close', 'end'].includes(client.status)) return client.disconnect()
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  client.disconnect()
  await ended
}
