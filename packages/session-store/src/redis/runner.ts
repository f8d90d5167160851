import type { CommandList, Operation } from '../command.ts'
import { OperationTrace, operationChannel } from '../diagnostics.ts'
import type { StoreError } from '../errors.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import {
  lateReply,
  notSent,
  type Outcome,
  operationError,
  overloaded,
  readOutcomes,
} from './outcomes.ts'
import type { NodeSender, Sender, Waiting } from './sender.ts'

/** The result or the error of one server that holds keys. */
export type NodeResult<Result> = {
  /** `host:port`, or the path of its socket. */
  readonly node: string
} & (
  | { readonly result: Result; readonly error?: never }
  | { readonly result?: never; readonly error: StoreError }
)

interface Limits {
  /** Timeout of an operation. After it, the operation still counts as in flight until it settles. */
  deadlineMs: number
  /** Maximum number of operations in flight; more are rejected. */
  maxInFlight: number
}

/**
 * An operation in flight: one object for its promise, its deadline and its place in a batch, because what lives until the
 * reply is what the garbage collector copies.
 */
class Attempt<Result> extends Deadline implements Waiting {
  readonly list: CommandList
  readonly promise: Promise<Result>
  readonly #operation: Operation<Result>
  readonly #deadlines: Deadlines
  readonly #settled: () => void
  readonly #resolve: (result: Result) => void
  readonly #reject: (error: unknown) => void
  #isLate = false

  constructor(
    operation: Operation<Result>,
    list: CommandList,
    deadlines: Deadlines,
    settled: () => void,
  ) {
    super()
    this.list = list
    this.#operation = operation
    this.#deadlines = deadlines
    this.#settled = settled
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    this.promise = promise
    this.#resolve = resolve
    this.#reject = reject
  }

  resolve(outcomes: readonly Outcome[]): void {
    if (!this.#settle()) return
    try {
      this.#resolve(readOutcomes(this.#operation, outcomes))
    } catch (error) {
      this.fail(error)
    }
  }

  reject(error: unknown): void {
    if (this.#settle()) this.fail(error)
  }

  fail(error: unknown): void {
    this.#reject(operationError(error, this.#operation.readOnly))
  }

  override onLate(): void {
    this.#isLate = true
    this.fail(lateReply(this.#operation.readOnly))
  }

  /** Whether the call still waits. */
  #settle(): boolean {
    this.#settled()
    this.#deadlines.stop(this)
    return !this.#isLate
  }
}

/** Runs operations with a sender, and applies the deadline, the limit in flight and the table of errors. */
export class Runner {
  readonly sender: Sender
  readonly #limits: Limits
  readonly #deadlines: Deadlines
  readonly #closing = new AbortController()
  #whenClosed: Promise<void> | undefined
  #isClosed = false
  #calls = 0
  #inFlight = 0
  #onIdle: (() => void) | undefined

  constructor(sender: Sender, limits: Limits) {
    this.sender = sender
    this.#limits = limits
    this.#deadlines = new Deadlines(limits.deadlineMs)
  }

  /** Operations that are waiting for replies. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Aborted by `close`. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /**
   * Sends the operation and reads its replies. The store's sender is `batching` (batching.ts) around `pooled` (pool.ts),
   * which writes to the socket (write-frame.ts).
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`.
   */
  run<Result>(operation: Operation<Result>): Promise<Result> {
    if (!operationChannel.hasSubscribers) return this.#attempt(this.sender, operation)
    const { commands } = operation
    const trace = new OperationTrace(commands)
    const traced = () => this.#attempt(this.sender, operation, { list: { commands, trace } })
    return operationChannel.tracePromise(traced, trace)
  }

  /** The servers that hold keys. @throws StoreError as `run`, if they are not known. */
  async nodes(timeoutMs = this.#limits.deadlineMs): Promise<readonly NodeSender[]> {
    const { sender } = this
    if (sender.nodes) {
      // The servers take the place of outcomes, so that this has a deadline, too.
      const known = { send: () => sender.nodes?.() as Promise<never[]> }
      const list = { commands: [], readOnly: true, read: (nodes: unknown) => nodes as NodeSender[] }
      return await this.#attempt(known, list, { timeoutMs })
    }
    const name = sender.connections?.().server ?? sender.name
    return [{ name, send: (list) => sender.send(list) }]
  }

  /**
   * Runs a read-only operation on one server, without limit: health checks work while operations wait for it.
   *
   * @param timeoutMs Default: the deadline.
   * @throws StoreError as `run`.
   */
  runOn<Result>(
    node: NodeSender,
    operation: Operation<Result>,
    timeoutMs = this.#limits.deadlineMs,
  ): Promise<Result> {
    return this.#attempt(node, { ...operation, readOnly: true }, { timeoutMs })
  }

  /**
   * Runs a read-only operation on each server that holds keys. A server that fails, or has not replied after
   * `timeoutMs`, has an error instead of a result.
   *
   * @throws StoreError as `run`, if the servers are not known.
   */
  async runOnEach<Result>(
    operation: Operation<Result>,
    timeoutMs = this.#limits.deadlineMs,
  ): Promise<NodeResult<Result>[]> {
    const until = performance.now() + timeoutMs
    const nodes = await this.nodes(timeoutMs)
    const left = Math.max(1, until - performance.now())
    const results = nodes.map((node) =>
      this.runOn(node, operation, left).then(
        (result) => ({ node: node.name, result }),
        (error: StoreError) => ({ node: node.name, error }),
      ),
    )
    return await Promise.all(results)
  }

  /**
   * Runs the round trips of a call, for which `close` waits.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if the store is closing; what the round trips throw.
   */
  call<Result>(trips: () => Promise<Result>): Promise<Result> {
    if (this.closing.aborted) {
      return Promise.reject(operationError(notSent('the store is closed'), true))
    }
    this.#calls++
    return started(trips).then(this.#ended, this.#failed)
  }

  /** Rejects further calls, waits for those in flight, and closes the sender: at most the deadline in all. */
  close(): Promise<void> {
    this.#whenClosed ??= this.#close()
    return this.#whenClosed
  }

  /** Settles within the time. Without `timeoutMs`, the limit in flight applies, too. */
  #attempt<Result>(
    sender: Pick<Sender, 'send' | 'enqueue'>,
    operation: Operation<Result>,
    { list = operation, timeoutMs }: { list?: CommandList; timeoutMs?: number } = {},
  ): Promise<Result> {
    const deadlines = timeoutMs === undefined ? this.#deadlines : new Deadlines(timeoutMs)
    const attempt = new Attempt(operation, list, deadlines, this.#settled)
    const isFull = this.#inFlight >= this.#limits.maxInFlight
    if (this.#isClosed) attempt.fail(notSent('the store is closed'))
    else if (isFull && timeoutMs === undefined) attempt.fail(overloaded(this.#inFlight))
    else {
      this.#inFlight++
      deadlines.start(attempt)
      if (sender.enqueue) sender.enqueue(attempt)
      else
        started(() => sender.send(list)).then(
          (outcomes) => attempt.resolve(outcomes),
          (error: unknown) => attempt.reject(error),
        )
    }
    return attempt.promise
  }

  readonly #ended = <Result>(result: Result): Result => {
    this.#calls--
    if (this.#calls === 0) this.#onIdle?.()
    return result
  }

  readonly #failed = (error: unknown): never => {
    this.#ended(undefined)
    throw error
  }

  readonly #settled = (): void => {
    this.#inFlight--
    if (this.#inFlight === 0) this.#onIdle?.()
  }

  async #close(): Promise<void> {
    this.#closing.abort()
    // The client of a custom sender may wait for a server that does not reply.
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#limits.deadlineMs)
    try {
      await Promise.race([this.#untilIdle(), late])
      this.#isClosed = true
      await Promise.race([this.sender.close(), late])
    } finally {
      clearTimeout(timer)
    }
  }

  async #untilIdle(): Promise<void> {
    while (this.#calls > 0 || this.#inFlight > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onIdle = resolve
      await promise
    }
  }
}

/** A custom sender may throw synchronously or return a plain value. */
function started<Sent>(start: () => Promise<Sent> | Sent): Promise<Sent> {
  try {
    return Promise.resolve(start())
  } catch (error) {
    return Promise.reject(error)
  }
}
