import { setTimeout as delay } from 'node:timers/promises'
import { scanOne } from '../../cluster/scan.ts'
import type { Connections } from '../connections/pool.ts'
import { UpdateTrace, updateChannel } from '../diagnostics.ts'
import type { StoreError } from '../errors.ts'
import type { Command, CommandList, Update } from '../operations.ts'
import {
  isNotSent,
  lateReply,
  notSent,
  type Outcome,
  overloaded,
  readOutcomes,
  updateError,
} from '../outcomes.ts'
import type { ScanPosition, ScanRequest, ScanStep, Sender } from './sender.ts'

export interface PoolState extends Connections {
  /** Updates that are waiting for replies. */
  inFlight: number
}

/** The result or the error of one server that holds keys. */
export type NodeResult<Result> = {
  /** `host:port`, or the path of its socket. */
  readonly node: string
} & (
  | { readonly result: Result; readonly error?: never }
  | { readonly result?: never; readonly error: StoreError }
)

/** Runs updates with a sender, and applies the deadline, the limit in flight and the table of errors. */
export interface Runner {
  /**
   * Sends the update and reads its replies.
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`.
   */
  run<Result>(update: Update<Result>): Promise<Result>
  /**
   * Sends read-only commands to each server that holds keys. A server that fails, or has not replied after
   * `timeoutMs` (default: the deadline), has an error instead of a result.
   *
   * @throws StoreError as `run`, if the servers are not known.
   */
  runOnEach<Result>(
    commands: readonly Command[],
    read: (outcomes: readonly Outcome[]) => Result,
    timeoutMs?: number,
  ): Promise<NodeResult<Result>[]>
  /**
   * One step of SCAN over all nodes that hold keys. Starts at the beginning, or continues at `from`.
   *
   * @throws StoreError as `run`.
   */
  scan(request: ScanRequest, from: ScanPosition | undefined): Promise<ScanStep>
  /**
   * Resolves once Redis is ready.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if Redis is not ready after `timeoutMs`.
   */
  ready(timeoutMs: number): Promise<void>
  /**
   * Starts a call that may run several updates, so that `close` waits for it. Call `end` afterwards.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` if the store is closing.
   */
  begin(): void
  end(): void
  /** Waits for calls and updates in flight, at most for the deadline, then closes the sender. */
  close(): Promise<void>
  /** State of the connection pool; undefined for a sender without one. */
  state(): PoolState | undefined
}

interface RunnerLimits {
  /** Timeout of an update. After it, the update still counts as in flight until it settles. */
  deadlineMs: number
  /** Maximum number of updates in flight to one server; more are rejected. */
  maxInFlight: number
}

interface AttemptOptions {
  timeoutMs?: number | undefined
  /** The servers that are used, if the sender has several. Each has a limit of its own. */
  servers?: readonly string[] | undefined
}

/** No limit: health checks work while updates wait for a node. */
const NO_SERVERS: readonly string[] = []

const PING: Update<void> = { commands: [['PING']], readOnly: true, read: () => undefined }
/** Pause between two checks of whether Redis is ready. */
export const PING_INTERVAL_MS = 100

export function createRunner(sender: Sender, limits: RunnerLimits): Runner {
  const { deadlineMs, maxInFlight } = limits
  const scan = sender.scan?.bind(sender)
  const nodes = sender.nodes?.bind(sender)
  const serversOf = sender.serversOf?.bind(sender)
  let inFlight = 0
  const inFlightByServer = new Map<string, number>()
  let calls = 0
  let closing: Promise<void> | undefined
  let closed = false
  let onIdle: (() => void) | undefined

  function attempt<Sent, Result>(
    readOnly: boolean,
    start: () => Promise<Sent>,
    read: (sent: Sent) => Result,
    { timeoutMs = deadlineMs, servers }: AttemptOptions = {},
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(updateError(error, readOnly))
      if (closed) return fail(notSent('the store is closed'))
      if (!serversOf && inFlight >= maxInFlight) return fail(overloaded(inFlight))
      const full = servers?.find((server) => inFlightTo(server) >= maxInFlight)
      if (full !== undefined) return fail(overloaded(maxInFlight, full))
      count(servers, 1)
      let isLate = false
      const deadline = setTimeout(() => {
        isLate = true
        fail(lateReply(readOnly))
      }, timeoutMs)
      const settle = (answer: () => void) => {
        count(servers, -1)
        if (inFlight === 0) onIdle?.()
        clearTimeout(deadline)
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

  /** Counts an update once in total, and once for each server that it uses. */
  function count(servers: readonly string[] | undefined, change: 1 | -1): void {
    inFlight += change
    if (!servers) return
    for (const server of servers) {
      const left = inFlightTo(server) + change
      if (left > 0) inFlightByServer.set(server, left)
      else inFlightByServer.delete(server)
    }
  }

  const inFlightTo = (server: string): number => inFlightByServer.get(server) ?? 0

  function send<Result>(update: Update<Result>, list: CommandList): Promise<Result> {
    const read = (outcomes: readonly Outcome[]) => readOutcomes(update, outcomes)
    if (!serversOf) return attempt(update.readOnly, () => sender.send(list), read)
    let servers: readonly string[]
    try {
      servers = serversOf(list.commands)
    } catch (error) {
      return Promise.reject(updateError(error, update.readOnly))
    }
    return attempt(update.readOnly, () => sender.send({ ...list, servers }), read, { servers })
  }

  function run<Result>(update: Update<Result>): Promise<Result> {
    if (!updateChannel.hasSubscribers) return send(update, update)
    const { commands, mergeable = false } = update
    const trace = new UpdateTrace(commands)
    return updateChannel.tracePromise(() => send(update, { commands, mergeable, trace }), trace)
  }

  async function runOnEach<Result>(
    commands: readonly Command[],
    read: (outcomes: readonly Outcome[]) => Result,
    timeoutMs = deadlineMs,
  ): Promise<NodeResult<Result>[]> {
    const until = performance.now() + timeoutMs
    const all = nodes ? await attempt(true, nodes, (nodes) => nodes, { timeoutMs }) : [sender]
    const left = Math.max(1, until - performance.now())
    return await Promise.all(
      all.map((node) =>
        attempt(true, () => node.send({ commands }), read, {
          timeoutMs: left,
          servers: serversOf && NO_SERVERS,
        }).then(
          (result) => ({ node: node.name, result }),
          (error: StoreError) => ({ node: node.name, error }),
        ),
      ),
    )
  }

  async function ping(timeoutMs: number): Promise<void> {
    let reason: unknown
    let isOver = false
    const answered = async (): Promise<boolean> => {
      while (!isOver) {
        try {
          await run(PING)
          return true
        } catch (error) {
          reason = error
        }
        await delay(PING_INTERVAL_MS)
      }
      return false
    }
    const timer = new AbortController()
    const late = delay(timeoutMs, false, { signal: timer.signal })
    const isReady = await Promise.race([answered(), late])
    isOver = true
    timer.abort()
    if (isReady) return
    throw isNotSent(reason) ? reason : notSent(`no reply after ${timeoutMs / 1000} s`, reason)
  }

  function begin(): void {
    if (closing) throw updateError(notSent('the store is closed'), true)
    calls++
  }

  function end(): void {
    if (--calls === 0) onIdle?.()
  }

  /** Rejects updates from now on, except those of calls in flight, which may still need some. */
  async function close(): Promise<void> {
    closed = calls === 0
    await beforeDeadline(untilIdle())
    closed = true
    await beforeDeadline(sender.close())
  }

  async function untilIdle(): Promise<void> {
    while (calls > 0 || inFlight > 0) {
      closed = calls === 0
      const { promise, resolve } = Promise.withResolvers<void>()
      onIdle = resolve
      await promise
    }
  }

  /** Limits the wait: the client of a custom sender may wait for a server that does not reply. */
  async function beforeDeadline(work: Promise<void>): Promise<void> {
    const timer = new AbortController()
    const late = delay(deadlineMs, undefined, { signal: timer.signal }).catch(() => undefined)
    await Promise.race([work, late]).finally(() => timer.abort())
  }

  return {
    run,
    runOnEach,
    scan: (request, from) =>
      scan
        ? attempt(
            true,
            () => scan(request, from),
            (step) => step,
          )
        : run(scanOne(request, from)),
    begin,
    end,
    ready: (timeoutMs) => sender.ready?.(timeoutMs) ?? ping(timeoutMs),
    close: () => (closing ??= close()),
    state: () => {
      const state = sender.state?.()
      return state && { ...state, inFlight }
    },
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
