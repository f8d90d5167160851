import type { CommandList, Operation } from '../command.ts'
import { OperationTrace, operationChannel } from '../diagnostics.ts'
import type { StoreError } from '../errors.ts'
import { Deadlines } from './deadlines.ts'
import { lateReply, notSent, operationError, overloaded, readOutcomes } from './outcomes.ts'
import type { NodeSender, Sender } from './sender.ts'

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
    const send = (list: CommandList) =>
      this.#attempt(
        () => this.sender.send(list),
        (outcomes) => readOutcomes(operation, outcomes),
        operation.readOnly,
      )
    if (!operationChannel.hasSubscribers) return send(operation)
    const { commands } = operation
    const trace = new OperationTrace(commands)
    return operationChannel.tracePromise(() => send({ commands, trace }), trace)
  }

  /** The servers that hold keys. @throws StoreError as `run`, if they are not known. */
  async nodes(timeoutMs = this.#limits.deadlineMs): Promise<readonly NodeSender[]> {
    const { sender } = this
    if (sender.nodes) {
      const known = () => sender.nodes?.() ?? []
      return await this.#attempt(known, (nodes) => nodes, true, timeoutMs)
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
    return this.#attempt(
      () => node.send({ commands: operation.commands }),
      (outcomes) => readOutcomes(operation, outcomes),
      true,
      timeoutMs,
    )
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
  async call<Result>(trips: () => Promise<Result>): Promise<Result> {
    if (this.closing.aborted) throw operationError(notSent('the store is closed'), true)
    this.#calls++
    try {
      return await trips()
    } finally {
      if (--this.#calls === 0) this.#onIdle?.()
    }
  }

  /** Rejects further calls, waits for those in flight, and closes the sender: at most the deadline in all. */
  close(): Promise<void> {
    this.#whenClosed ??= this.#close()
    return this.#whenClosed
  }

  /** Settles within the time. Without `timeoutMs`, the limit in flight applies, too. */
  #attempt<Sent, Result>(
    start: () => Promise<Sent> | Sent,
    read: (sent: Sent) => Result,
    readOnly: boolean,
    timeoutMs?: number,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(operationError(error, readOnly))
      if (this.#isClosed) return fail(notSent('the store is closed'))
      const isFull = this.#inFlight >= this.#limits.maxInFlight
      if (isFull && timeoutMs === undefined) return fail(overloaded(this.#inFlight))
      this.#inFlight++
      let isLate = false
      const deadlines = timeoutMs === undefined ? this.#deadlines : new Deadlines(timeoutMs)
      const deadline = deadlines.start(() => {
        isLate = true
        fail(lateReply(readOnly))
      })
      const settle = (answer: () => void) => {
        this.#inFlight--
        if (this.#inFlight === 0) this.#onIdle?.()
        deadlines.stop(deadline)
        if (isLate) return
        try {
          answer()
        } catch (error) {
          fail(error)
        }
      }
      started(start).then(
        (sent) => settle(() => resolve(read(sent))),
        (error: unknown) => settle(() => fail(error)),
      )
    })
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
