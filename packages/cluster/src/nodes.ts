import {
  batching,
  disconnect,
  publishConnections,
  publishRoundTrip,
  retryDelayMs,
  type Sender,
  StoreError,
  sendWith,
  shortLivedConnection,
} from '@onetrip/session-store'
import { Cluster, type ClusterOptions, type Redis } from 'ioredis'
import { ClusterHealth, nodeName } from './health.ts'
import { type ClusterAddress, clusterNodes } from './location.ts'
import { explained } from './outcomes.ts'
import { SLOTS } from './slots.ts'

/** How often the table of slots is read, to notice a failover without traffic. */
const SLOTS_INTERVAL_MS = 5_000
/** A connection that has not replied for so many deadlines is closed. */
const DEADLINES_UNTIL_STALLED = 5
/** Limits the refreshes, each of which opens a connection: not one for every command that finds no node. */
const REFRESH_INTERVAL_MS = 100

export const notSent = (why: string, cause?: unknown) =>
  new StoreError('ONETRIP_NOT_SENT', `not sent to Redis: ${why}`, { cause })

/**
 * A client that never sends a command twice, which ioredis does by default after a connection was closed. The offline
 * queue stays on, because ioredis connects to a node when it sends the first command there.
 */
function clientOf(address: ClusterAddress, connectTimeout: number, options: ClusterOptions) {
  const { nodes, login } = clusterNodes(address)
  const redisOptions = {
    ...login,
    ...options.redisOptions,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    protocol: 2,
    connectTimeout,
  }
  return new Cluster(nodes, {
    ...options,
    ...(address.natMap && { natMap: address.natMap }),
    // Leaves the lookup to Node: ioredis would replace the name by an address, which no certificate contains.
    dnsLookup: (name, done) => done(null, name),
    retryDelayOnFailover: 0,
    lazyConnect: true,
    redisOptions: redisOptions as { protocol: 2 }, // ioredis's type only fits literal options
  })
}

/** A client for one operation: it first asks a node for the table of slots. It never retries. */
export const shortCluster = (address: ClusterAddress, connectTimeoutMs: number): Cluster =>
  clientOf(address, connectTimeoutMs, { clusterRetryStrategy: () => null })

/** A node, and the connection to it. */
export class Node {
  readonly name: string
  readonly redis: Redis
  /** Operations that wait for the node. */
  inFlight = 0
  /** Sends the operations of an event-loop turn in one batch, without redirections. */
  readonly send: Sender['send']
  #opening: Promise<void> | undefined

  constructor(redis: Redis, send: (node: Node) => Sender['send']) {
    this.redis = redis
    this.name = nodeName(redis)
    const { name } = this
    this.send = batching({ name, send: send(this), close: async () => {} }).send
    publishConnections(redis)
  }

  /** ioredis keeps the status `ready` from the end of a connection until its event `close`. */
  get isUp(): boolean {
    return this.redis.status === 'ready' && this.redis.stream.writable
  }

  /** Opens the connection, or waits until it is open. @throws StoreError `ONETRIP_NOT_SENT` */
  async connect(): Promise<void> {
    const { redis } = this
    if (redis.status === 'wait') redis.connect().catch(() => undefined) // 'end' follows
    const isOpening = redis.status === 'connecting' || redis.status === 'connect'
    if (!this.isUp && !isOpening) throw noConnection(this.name)
    this.#opening ??= this.#untilUp().finally(() => {
      this.#opening = undefined
    })
    await this.#opening
  }

  /** A process that was stopped accepts connections, but never replies. */
  async #untilUp(): Promise<void> {
    if (this.isUp) return
    const { redis } = this
    const { promise, resolve } = Promise.withResolvers<void>()
    const late = setTimeout(resolve, redis.options.connectTimeout)
    redis.once('ready', resolve).once('end', resolve)
    await promise
    clearTimeout(late)
    redis.off('ready', resolve).off('end', resolve)
    if (!this.isUp) throw noConnection(this.name)
  }
}

const noConnection = (node = 'that has the slot') =>
  notSent(`there is no connection to the node ${node}`)

/** The nodes of a cluster, as the client knows them. */
export class Nodes {
  readonly client: Cluster
  readonly #health: ClusterHealth
  readonly #nodes = new Map<string, Node>()
  readonly #deadlineMs: number
  #lastError: unknown
  /** Why no node can be reached: ioredis only reports that a connection is closed. */
  #reason: Error | undefined
  #refreshedAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  /** @throws TypeError if the address is invalid. */
  constructor(address: ClusterAddress, deadlineMs: number) {
    this.#deadlineMs = deadlineMs
    this.client = clientOf(address, deadlineMs / 2, {
      clusterRetryStrategy: retryDelayMs,
      enableReadyCheck: false, // `ready` of the store checks every node
      slotsRefreshInterval: SLOTS_INTERVAL_MS,
      redisOptions: {
        connectionName: 'onetrip',
        socketTimeout: DEADLINES_UNTIL_STALLED * deadlineMs,
      },
    })
    const send = sendWith()
    this.client.on('+node', (redis: Redis) => {
      const node = new Node(redis, (node) => this.#sending(node, send))
      this.#nodes.set(node.name, node)
    })
    this.client.on('-node', (redis: Redis) => {
      if (this.#nodes.get(nodeName(redis))?.redis === redis) this.#nodes.delete(nodeName(redis))
    })
    this.client.on('node error', (error: Error, node: string) => {
      this.#lastError = new Error(`${node}: ${error.message}`, { cause: error })
    })
    this.client.on('error', async (error: Error) => {
      this.#lastError ??= error
      if (!this.#isClosed) this.#reason = await connectionError(address, deadlineMs)
    })
    this.#health = new ClusterHealth(this.client)
  }

  /** @throws StoreError `ONETRIP_NOT_SENT` if the nodes are not known. */
  requireReady(): void {
    if (this.#isClosed) throw notSent('the sender is closed')
    const { status } = this.client
    if (status === 'wait') this.client.connect().catch(() => undefined) // an event has the error
    if (status !== 'ready') throw notSent('there is no connection', this.#reason ?? this.#lastError)
  }

  /** The name of the node that has a slot. */
  ownerOf(slot: number): string | undefined {
    return this.client.slots[slot]?.[0]
  }

  /** @throws StoreError `ONETRIP_NOT_SENT` if the node has left the cluster or failed. */
  get(name: string | undefined): Node {
    const node = this.find(name)
    if (node) return node
    this.#refresh()
    throw noConnection(name)
  }

  /** As `get`, but returns undefined. */
  find(name: string | undefined): Node | undefined {
    return name === undefined || this.#health.failed.has(name) ? undefined : this.#nodes.get(name)
  }

  /** The names of the nodes that have slots; undefined stands for slots without a node. */
  primaries(): (string | undefined)[] {
    return [...new Set(Array.from({ length: SLOTS }, (_, slot) => this.ownerOf(slot)))]
  }

  /** For each primary, whether the connection to it is up. */
  states(): boolean[] {
    if (this.client.status !== 'ready') return [false]
    return this.primaries().map((primary) => this.find(primary)?.isUp === true)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#health.stop()
    await disconnect(this.client)
  }

  #sending(node: Node, send: ReturnType<typeof sendWith>): Sender['send'] {
    return async ({ commands }) => {
      countRoundTrip(commands.length)
      const late = setTimeout(() => this.#findSuccessor(), this.#deadlineMs)
      try {
        const outcomes = await send(node.redis, commands).catch((error: Error) => [error])
        return outcomes.map((outcome) => explained(outcome, node.name))
      } finally {
        clearTimeout(late)
      }
    }
  }

  /** Another node may have taken over from one whose reply is late. */
  #findSuccessor(): void {
    this.#refresh()
    this.#health.suspect()
  }

  /** Makes ioredis reconnect to the current nodes after a lost connection. */
  #refresh(): void {
    const now = performance.now()
    if (now - this.#refreshedAt < REFRESH_INTERVAL_MS) return
    this.#refreshedAt = now
    this.client.refreshSlotsCache()
  }
}

let commandsOfTurn = 0

/** The batches to all nodes of an event-loop turn are one round trip. */
function countRoundTrip(commands: number): void {
  if (commandsOfTurn === 0) {
    setImmediate(() => {
      publishRoundTrip(commandsOfTurn)
      commandsOfTurn = 0
    })
  }
  commandsOfTurn += commands
}

/** Finds out why the first node cannot be reached; undefined if it can. */
async function connectionError(
  address: ClusterAddress,
  timeoutMs: number,
): Promise<Error | undefined> {
  const { nodes, login } = clusterNodes(address)
  const options = { ...login, ...nodes[0], enableReadyCheck: false, socketTimeout: timeoutMs }
  const redis = shortLivedConnection(options, timeoutMs)
  let reason: Error | undefined
  redis.on('error', (error) => {
    reason = error
  })
  await redis.connect().catch((error: Error) => {
    reason ??= error
  })
  redis.disconnect()
  const { host, port } = options
  return reason && new Error(`${host}:${port}: ${reason.message}`, { cause: reason })
}
