import { setTimeout as delay } from 'node:timers/promises'
import type { CommandList, Operation } from '../command.ts'
import { OperationTrace, operationChannel } from '../diagnostics.ts'
import type { StoreError } from '../errors.ts'
import { Deadlines } from './deadlines.ts'
import {
  lateReply,
  notSent,
  type Outcome,
  operationError,
  overloaded,
  readOutcomes,
} from './outcomes.ts'
import type { NodeSender, Sender } from './sender.ts'

/** The result or the error of one server that holds keys. */
export type NodeResult<Result> = {
  /** `host:port`, or the path of its socket. */
  readonly node: string
} & (
  | { readonly result: Result; readonly error?: never }
  | { readonly result?: never; readonly error: StoreError }
)

/** Runs operations with a sender, and applies the deadline, the limit in flight and the table of errors. */
export interface Runner {
  readonly sender: Sender
  /** Operations that are waiting for replies. */
  readonly inFlight: number
  /**
   * Sends the operation and reads its replies.
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`.
   */
  run<Result>(operation: Operation<Result>): Promise<Result>
  /** The servers that hold keys. @throws StoreError as `run`, if they are not known. */
  nodes(timeoutMs?: number): Promise<readonly NodeSender[]>
  /**
   * Runs a read-only operation on one server, without limit: health checks work while operations wait for it.
   *
   * @param timeoutMs Default: the deadline.
   * @throws StoreError as `run`.
   */
  runOn<Result>(node: NodeSender, operation: Operation<Result>, timeoutMs?: number): Promise<Result>
  /**
   * Starts a call, which may run several operations, so that `close` waits for it. Call `end` afterwards.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if the store is closing.
   */
  begin(): void
  end(): void
  /** Aborted by `close`. */
  readonly closing: AbortSignal
  /** Rejects further calls, waits for those in flight, and closes the sender: at most the deadline in all. */
  close(): Promise<void>
}

interface RunnerLimits {
  /** Timeout of an operation. After it, the operation still counts as in flight until it settles. */
  deadlineMs: number
  /** Maximum number of operations in flight; more are rejected. */
  maxInFlight: number
}

interface AttemptOptions {
  readOnly: boolean
  timeoutMs?: number | undefined
  /** Default true. */
  limited?: boolean
}

export function createRunner(sender: Sender, { deadlineMs, maxInFlight }: RunnerLimits): Runner {
  const deadlines = new Deadlines(deadlineMs)
  let inFlight = 0
  let calls = 0
  const closing = new AbortController()
  let whenClosed: Promise<void> | undefined
  let closed = false
  let onIdle: (() => void) | undefined

  function attempt<Sent, Result>(
    start: () => Promise<Sent>,
    read: (sent: Sent) => Result,
    { readOnly, timeoutMs, limited = true }: AttemptOptions,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(operationError(error, readOnly))
      if (closed) return fail(notSent('the store is closed'))
      if (limited && inFlight >= maxInFlight) return fail(overloaded(inFlight))
      inFlight++
      let isLate = false
      const timer = timeoutMs === undefined ? deadlines : new Deadlines(timeoutMs)
      const deadline = timer.start(() => {
        isLate = true
        fail(lateReply(readOnly))
      })
      const settle = (answer: () => void) => {
        inFlight--
        if (inFlight === 0) onIdle?.()
        timer.stop(deadline)
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

  function send<Result>(operation: Operation<Result>, list: CommandList): Promise<Result> {
    const { readOnly } = operation
    const read = (outcomes: readonly Outcome[]) => readOutcomes(operation, outcomes)
    return attempt(() => sender.send(list), read, { readOnly })
  }

  function run<Result>(operation: Operation<Result>): Promise<Result> {
    if (!operationChannel.hasSubscribers) return send(operation, operation)
    const { commands } = operation
    const trace = new OperationTrace(commands)
    return operationChannel.tracePromise(() => send(operation, { commands, trace }), trace)
  }

  async function nodes(timeoutMs = deadlineMs): Promise<readonly NodeSender[]> {
    const known = sender.nodes?.bind(sender)
    if (known) {
      return await attempt(known, (nodes) => nodes, { readOnly: true, timeoutMs, limited: false })
    }
    const name = sender.connections?.().server ?? sender.name
    return [{ name, send: (list) => sender.send(list) }]
  }

  function begin(): void {
    if (closing.signal.aborted) throw operationError(notSent('the store is closed'), true)
    calls++
  }

  function end(): void {
    if (--calls === 0) onIdle?.()
  }

  async function close(): Promise<void> {
    closing.abort()
    const timer = new AbortController()
    // The client of a custom sender may wait for a server that does not reply.
    const late = delay(deadlineMs, undefined, { signal: timer.signal }).catch(() => undefined)
    try {
      await Promise.race([untilIdle(), late])
      closed = true
      await Promise.race([sender.close(), late])
    } finally {
      timer.abort()
    }
  }

  async function untilIdle(): Promise<void> {
    while (calls > 0 || inFlight > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      onIdle = resolve
      await promise
    }
  }

  return {
    sender,
    get inFlight() {
      return inFlight
    },
    run,
    nodes,
    runOn: (node, operation, timeoutMs) =>
      attempt(
        () => node.send({ commands: operation.commands }),
        (outcomes) => readOutcomes(operation, outcomes),
        { readOnly: true, timeoutMs, limited: false },
      ),
    begin,
    end,
    closing: closing.signal,
    close: () => (whenClosed ??= close()),
  }
}

/** A custom sender may throw synchronously or return a plain value. */
function started<Sent>(start: () => Promise<Sent>): Promise<Sent> {
  try {
    return Promise.resolve(start())
  } catch (error) {
    return Promise.reject(error)
  }
}
