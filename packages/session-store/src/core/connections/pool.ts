import { once } from 'node:events'
import type { Redis } from 'ioredis'
import { clusterAt, connectionError } from '../../cluster/client.ts'
import { ClusterHealth } from '../../cluster/health.ts'
import type { ClusterAddress, ServerLocation } from '../../cluster/location.ts'
import {
  connectedTo,
  nodesOf,
  openPrimaries,
  primaryStates,
  refreshSlots,
} from '../../cluster/nodes.ts'
import type { Command } from '../operations.ts'
import { notSent } from '../outcomes.ts'
import { type Client, isCluster, redisAt } from './client.ts'
import { checkClient } from './client-check.ts'
import { type ClientWatch, watchClient } from './client-watch.ts'

interface Slot {
  readonly client: Client
  readonly watch: ClientWatch
  /** Lists of commands that are waiting for replies. */
  inFlight: number
  /** Of a cluster. */
  readonly health: ClusterHealth | undefined
}

/** Either a location, where the pool opens connections, or `client`. */
interface PoolOptions extends ServerLocation {
  cluster?: ClusterAddress | undefined
  /** Existing clients to use; the pool does not close them. */
  client?: Client | readonly Client[] | undefined
  /** How many connections to open; in a cluster, to each node. */
  size: number
  connectTimeoutMs: number
  /** A connection that has not replied for so long is closed and reopened. */
  stalledAfterMs: number
}

/** The state of a connection pool. */
export interface Connections {
  /** Connections, up or not. In a cluster: one to each primary for each client. */
  connections: number
  /** Connections that are up. */
  ready: number
}

/** A connection pool of fixed size. */
export class Pool {
  readonly #slots: readonly Slot[]
  readonly #owned: boolean
  readonly #options: PoolOptions
  #next = 0
  #closed = false

  /**
   * Does not connect yet; `ready()` does.
   *
   * @throws TypeError unless exactly one of `url`, `sentinel`, `cluster` and `client` is set and valid.
   */
  constructor(options: PoolOptions) {
    const { url, sentinel, cluster, client, size, stalledAfterMs } = options
    const given = [url, sentinel, cluster, client].filter((option) => option !== undefined)
    if (given.length !== 1) {
      throw new TypeError('set exactly one of url, sentinel, cluster and client')
    }
    this.#options = options
    this.#owned = client === undefined
    const open = () =>
      cluster ? clusterAt(cluster, options) : redisAt(options, options.connectTimeoutMs)
    const clients = this.#owned
      ? Array.from({ length: size }, open)
      : [client as Client | readonly Client[]].flat()
    if (clients.length === 0) throw new TypeError('client must contain at least one ioredis client')
    for (const client of clients) checkClient(client)
    this.#slots = clients.map((client) => ({
      client,
      watch: watchClient(client, { stalledAfterMs, isOwn: this.#owned }),
      inFlight: 0,
      health: isCluster(client) ? new ClusterHealth(client, leave) : undefined,
    }))
  }

  get state(): Connections {
    const up = this.#slots.flatMap(({ client, watch }) =>
      isCluster(client) ? primaryStates(client) : watch.isReady,
    )
    return { connections: up.length, ready: up.filter(Boolean).length }
  }

  /** The nodes of the cluster that have the keys of the commands. */
  serversOf(commands: readonly Command[]): string[] {
    const cluster = this.#slots.map(({ client }) => client).find(isCluster)
    return cluster ? nodesOf(cluster, commands) : []
  }

  /** Waits until the connections to these nodes of the cluster are up (`Sender.prepare`). */
  prepare(servers: readonly string[]): Promise<void> | undefined {
    const waits = this.#slots.flatMap(({ client }) =>
      isCluster(client) && client.status === 'ready' ? (connectedTo(client, servers) ?? []) : [],
    )
    return waits.length > 0 ? Promise.all(waits).then(() => undefined) : undefined
  }

  /**
   * Opens all connections and waits until they are ready.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if one is not ready after `timeoutMs`.
   */
  async ready(timeoutMs: number): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      await Promise.all(this.#slots.map((slot) => usable(slot, signal)))
    } catch {
      const reason = await this.#whyNotReady()
      throw notSent(`no connection after ${timeoutMs / 1000} s`, reason ?? this.#lastError)
    }
  }

  /**
   * Runs `work` with the ready connection that has the least in flight.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if no connection is ready.
   */
  use<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    const slot = this.#leastUsed()
    if (slot) return this.#lend(slot, work)
    const why = this.#closed ? 'the pool is closed' : 'there is no connection'
    return Promise.reject(notSent(why, this.#lastError))
  }

  /** Closes the connections that the pool opened. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#owned) await Promise.all(this.#slots.map(({ client }) => disconnect(client)))
    for (const { client, watch, health } of this.#slots) {
      watch.release()
      health?.stop()
      // ioredis prints errors if there is no listener.
      if (this.#owned) client.on('error', () => {})
    }
  }

  async #whyNotReady(): Promise<unknown> {
    const { cluster, connectTimeoutMs } = this.#options
    return cluster && (await connectionError(cluster, connectTimeoutMs))
  }

  get #lastError(): unknown {
    return this.#slots.find(({ watch }) => watch.lastError !== undefined)?.watch.lastError
  }

  /** The client with the least in flight; round robin between equal ones. */
  #leastUsed(): Slot | undefined {
    if (this.#closed) return undefined
    let best: Slot | undefined
    for (let tried = 0; tried < this.#slots.length; tried++) {
      const slot = this.#slots[(this.#next + tried) % this.#slots.length] as Slot
      if (!slot.watch.isReady) continue
      if (best === undefined || slot.inFlight < best.inFlight) best = slot
    }
    if (best) this.#next = (this.#slots.indexOf(best) + 1) % this.#slots.length
    return best
  }

  async #lend<Result>(slot: Slot, work: (client: Client) => Promise<Result>): Promise<Result> {
    slot.inFlight++
    const { connectTimeoutMs, stalledAfterMs } = this.#options
    const late = slot.health
      ? setTimeout(checkNodes, connectTimeoutMs, slot)
      : setTimeout(reopen, stalledAfterMs, slot)
    try {
      return await work(slot.client)
    } finally {
      clearTimeout(late)
      slot.inFlight--
    }
  }
}

/** Without this, TCP would detect a vanished peer only after about 15 minutes. */
function reopen({ client }: Slot): void {
  if (isCluster(client)) return // there, `socketTimeout` closes the connection to each node
  // Not disconnect(), which waits until the peer closes the connection, too.
  client.stream?.destroy(new Error('no reply for too long'))
}

/** Another node of the cluster may have taken over from one whose reply is late. */
function checkNodes({ client, health }: Slot): void {
  if (isCluster(client)) refreshSlots(client)
  health?.suspect()
}

/** Ends the connection to a node that has failed: the callers of commands in flight get unknown outcomes now. */
function leave(node: Redis): void {
  node.stream?.destroy(new Error('the other nodes of the cluster call this node failed'))
}

async function usable({ client, watch }: Slot, signal: AbortSignal): Promise<void> {
  if (client.status === 'wait') client.connect().catch(() => undefined) // the 'error' event reports it
  while (!watch.isReady) {
    if (client.status === 'end') throw new Error('the client is closed')
    await watch.changed(signal)
  }
  if (isCluster(client)) await Promise.race([openPrimaries(client), once(signal, 'abort')])
}

async function disconnect(client: Client): Promise<void> {
  // Without an open socket no 'end' follows: disconnect() only cancels the next attempt to connect.
  if (['wait', 'reconnecting', 'close', 'end'].includes(client.status)) return client.disconnect()
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  client.disconnect()
  await ended
}
