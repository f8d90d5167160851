import type { Connections } from '../connections/pool.ts'
import type { Command, CommandList } from '../operations.ts'
import type { OnArrival, Outcome } from '../outcomes.ts'

/**
 * Sends commands to Redis: with ioredis, with another client, or as a decorator such as `batching`. The store
 * applies the deadline, the limit in flight and the table of errors.
 */
export interface Sender {
  /** The name in tables and metrics, such as `frame`, `pipeline` or `node-redis`. */
  readonly name: string
  /**
   * Sends the commands in order and resolves with one outcome for each: Redis's reply; an `Error` named
   * `ReplyError` if Redis returned an error; any other `Error` if the reply was lost. A rejection means that all
   * replies were lost, except that a `StoreError` is passed to the caller unchanged.
   *
   * After a lost reply, it may omit the remaining outcomes; they count as lost, too: Redis may have executed the
   * commands. A sender that knows that it has not sent a command returns a `StoreError` with the code
   * `ONETRIP_NOT_SENT` as its outcome, and may omit the outcomes after that one as well.
   *
   * A sender for several servers may call `onArrival` each time that one has replied, so that callers do not wait
   * for the slowest server of the list.
   */
  send(list: CommandList, onArrival?: OnArrival): Promise<readonly Outcome[]>
  /**
   * The servers that have the keys of the commands, at least one: `maxInFlight` applies to each. Omit it if there is
   * one server.
   */
  serversOf?(commands: readonly Command[]): readonly string[]
  /**
   * Waits until the connections to all of these servers are up. Returns undefined if they are up now, which is the
   * usual case. `batching` calls it before it merges, so that an operation is sent to all of its servers or to none.
   * Rejects with `ONETRIP_NOT_SENT` if a server cannot be reached. Omit it if there is one server.
   */
  prepare?(servers: readonly string[]): Promise<void> | undefined
  /** Closes all connections. Called when nothing is in flight, or after the deadline. */
  close(): Promise<void>
  /** The state of the connection pool. Omit it if there is no pool. */
  state?(): Connections
  /**
   * One step of SCAN over all nodes that hold keys. Starts at the beginning, or continues at `from`. Omit it if
   * all keys are on one server; the store then sends SCAN with `send`.
   */
  scan?(request: ScanRequest, from: ScanPosition | undefined): Promise<ScanStep>
  /** The servers that hold keys. Omit it if there is one server. */
  nodes?(): Promise<readonly NodeSender[]>
  /**
   * Resolves once Redis is ready. If omitted, the store sends PING until it gets a reply.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if Redis is not ready after `timeoutMs`.
   */
  ready?(timeoutMs: number): Promise<void>
}

/** One server that holds keys. */
export interface NodeSender {
  /** `host:port`, or the path of a Unix socket; `none` for slots of a cluster without a node. */
  readonly name: string
  /** As `Sender.send`, but only to this server, without redirections. */
  send(list: CommandList): Promise<readonly Outcome[]>
}

export interface ScanRequest {
  /** The pattern of `SCAN MATCH`. */
  match: string
  /** The approximate number of keys that one step examines (`SCAN COUNT`). */
  count: number
}

/** Where a scan continues. */
export interface ScanPosition {
  readonly node: string
  readonly cursor: string
}

export interface ScanStep {
  /** A scan may return a key twice. */
  readonly keys: readonly string[]
  /** Where to continue; undefined at the end. */
  readonly next: ScanPosition | undefined
}
