import type { CommandList } from '../command.ts'
import type { Outcome } from './outcomes.ts'

/**
 * Sends commands to Redis: with ioredis, with another client, or as a decorator such as `batching`. The store
 * applies the deadline, the limit in flight and the table of errors.
 */
export interface Sender {
  /** The name in tables and metrics, such as `batch` or `node-redis`. */
  readonly name: string
  /**
   * Sends the commands in order and resolves with one outcome for each: Redis's reply; an `Error` named
   * `ReplyError` if Redis returned an error (with `temporary: true` if it executed nothing, not even of a script, and
   * waiting may help); any other `Error` if the reply was lost. A rejection means that all
   * replies were lost, except that a `StoreError` is passed to the caller unchanged.
   *
   * After a lost reply, it may omit the remaining outcomes; they count as lost, too: Redis may have executed the
   * commands. A sender that knows that it has not sent a command returns a `StoreError` with the code
   * `ONETRIP_NOT_SENT` as its outcome, and may omit the outcomes after that one as well.
   */
  send(list: CommandList): Promise<readonly Outcome[]>
  /** As `send`, for a caller that waits without a promise. Omit it in senders of your own. */
  enqueue?(waiting: Waiting): void
  /** Closes all connections. Called when nothing is in flight, or after the deadline. */
  close(): Promise<void>
  /** The state of the connections, for metrics. Omit it if there are none between two operations. */
  connections?(): Connections
  /**
   * The servers that share the keys. Omit it if all keys are on one server.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if they are not known.
   */
  nodes?(): Promise<readonly NodeSender[]>
  /**
   * Subscribes to these channels of Redis with a connection of its own, which does not reconnect. Omit it if the sender
   * cannot: `watchSession` then rejects.
   */
  subscribe?(channels: readonly string[], onMessage: (message: string) => void): Subscription
}

/** An operation that waits for its outcomes. One of the functions is called once. */
export interface Waiting {
  readonly list: CommandList
  resolve(outcomes: readonly Outcome[]): void
  reject(error: unknown): void
}

export interface Subscription {
  /** Resolves when Redis has confirmed the subscription. */
  readonly ready: Promise<unknown>
  /** Resolves when the connection is closed. */
  readonly lost: Promise<unknown>
  close(): void
}

interface Connections {
  /** Connections, up or not. With several servers: one to each. */
  connections: number
  /** Connections that are up. */
  ready: number
  /** How many connections it has opened so far, for the store's own use. */
  opened?: number
  /** `host:port` of the server, or the path of its socket; absent if there are several servers. */
  server?: string
}

/** One server that holds keys. */
export interface NodeSender {
  /** `host:port`, or the path of a Unix socket; `none` for keys that no server has. */
  readonly name: string
  /** As `Sender.send`, but only to this server. If another one has the key, the outcome is null. */
  send(list: CommandList): Promise<readonly Outcome[]>
}
