import type { Connections } from '../connections/pool.ts'
import type { OnArrival, Outcome } from '../outcomes.ts'
import type { Command, CommandList } from '../updates.ts'

/**
 * A way of putting commands on the wire. Ours, another client than ioredis and a decorator such as
 * `batching` are all of this type; limits of time and number, and the meaning of replies, are the store's.
 */
export interface Sender {
  /** As tables and metrics show it: `frame`, `pipeline`, `node-redis`. */
  readonly name: string
  /**
   * Sends the commands in their order and resolves with what became of each: Redis's reply; an `Error`
   * whose name is `ReplyError` where Redis answered with an error; any other `Error` where the reply was
   * lost. May end early with such a one. To reject means the same for all of them, unless it is with a
   * `StoreError`, which the caller gets as it is. A sender for several servers may call `onArrival`, so that
   * callers need not wait for the slowest server that the list is sent to.
   */
  send(list: CommandList, onArrival?: OnArrival): Promise<readonly Outcome[]>
  /**
   * The servers that have the keys of the commands: `maxInFlight` is a limit for each of them. Absent: there
   * is one.
   */
  serversOf?(commands: readonly Command[]): readonly string[]
  /** Closes every connection that it opened. Called when nothing is in flight, or a deadline later. */
  close(): Promise<void>
  /** What the shared connections are doing. Absent: there are none. */
  state?(): Connections
  /**
   * One step of SCAN over all nodes that hold keys, beginning or going on at `from`. Absent: all keys are
   * on one server, and the command is sent like any other.
   */
  scan?(request: ScanRequest, from: ScanPosition | undefined): Promise<ScanStep>
  /** The servers that hold keys. Absent: there is one. */
  nodes?(): Promise<readonly NodeSender[]>
  /**
   * Resolves once Redis can be used. Absent: the store sends PING until it is answered.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` when it cannot within `timeoutMs`.
   */
  ready?(timeoutMs: number): Promise<void>
}

/** One server that holds keys. */
export interface NodeSender {
  /** `host:port`, or the path of its socket; `none` for slots of a cluster that no node has. */
  readonly name: string
  /** As `Sender.send`, to this server only: nothing is redirected to another one. */
  send(list: CommandList): Promise<readonly Outcome[]>
}

export interface ScanRequest {
  /** As `SCAN MATCH`. */
  match: string
  /** About how many keys one step looks at. */
  count: number
}

/** Where a scan goes on. */
export interface ScanPosition {
  readonly node: string
  readonly cursor: string
}

export interface ScanStep {
  /** Some perhaps twice. */
  readonly keys: readonly string[]
  /** Undefined at the end. */
  readonly next: ScanPosition | undefined
}
