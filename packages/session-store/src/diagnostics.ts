import { channel, tracingChannel } from 'node:diagnostics_channel'
import type { Redis } from 'ioredis'
import type { StoreErrorCode } from './errors.ts'

/** One write of commands to Redis and the wait for their replies. */
export interface RoundTrip {
  /** The number of commands. */
  commands: number
}

/** `onetrip:round-trip`: a message of type `RoundTrip` for every round trip of an operation. */
export const roundTripChannel = channel('onetrip:round-trip')

/** The message of an operation on `onetrip:operation`. It contains no keys and no values. */
export class OperationTrace {
  readonly #commands: readonly (readonly [name: string, ...args: unknown[]])[]
  /** Why the operation failed; `unknown` for an error without a code. */
  errorCode?: string

  constructor(commands: readonly (readonly [name: string, ...args: unknown[]])[]) {
    this.#commands = commands
  }

  /** The names of its commands, in order. */
  get commands(): string[] {
    return this.#commands.map(([name]) => name)
  }

  // The tracing channel sets these two. They may contain user data, so they are not stored.
  set result(_: unknown) {}
  set error(error: unknown) {
    this.errorCode = String((error as { code?: unknown } | undefined)?.code ?? 'unknown')
  }
}

/** `onetrip:operation`, a tracing channel: an operation, from the call to its result. */
export const operationChannel = tracingChannel<OperationTrace>('onetrip:operation')

/** The message of a batch on `onetrip:batch`: operations of concurrent callers that are sent together. */
export class BatchTrace {
  readonly operations: number
  readonly commands: number
  /** The messages of its operations on `onetrip:operation`, if that channel has subscribers. */
  readonly traces: readonly OperationTrace[]
  /** From the first write to the last reply. Set when the batch ends. */
  durationMs = 0
  /** Operations with a command that failed or whose reply was lost. Set when the batch ends. */
  failed = 0

  constructor(operations: number, commands: number, traces: readonly OperationTrace[]) {
    this.operations = operations
    this.commands = commands
    this.traces = traces
  }

  // As in OperationTrace.
  set result(_: unknown) {}
  set error(_: unknown) {}
}

/** `onetrip:batch`, a tracing channel: a batch, from the first write to the last reply. */
export const batchChannel = tracingChannel<BatchTrace>('onetrip:batch')

/** `onetrip:connection`: a connection to Redis was opened. */
export const connectionChannel = channel('onetrip:connection')

/** `onetrip:disconnection`: a connection of a pool was closed or lost. */
export const disconnectionChannel = channel('onetrip:disconnection')

/** What the janitor changed. */
export interface RetentionWork {
  /** Sessions ended because they were idle or beyond the maximum. */
  evicted: number
  /** Items removed from the item counts: beyond `keptItems`, or halved to 0. */
  itemsDropped: number
  itemsHalved: number
  /** Leftovers removed; one session may have several. */
  swept: number
}

/** One step of the janitor: at most one batch of changes. */
export interface RetentionStep extends RetentionWork {
  /** After an eviction: the number of sessions still beyond the maximum. */
  surplus?: number
  durationMs: number
}

/** One run of the janitor. */
export interface RetentionRun extends RetentionWork {
  /** False if another worker held the lock; then this run did nothing. */
  worked: boolean
  /** Whether a sweep is unfinished; the next run continues it. */
  sweeping: boolean
  /** Why the run ended early. */
  interrupted?: 'stopped' | 'lock lost'
  durationMs: number
}

/** A progress event of the janitor. */
export type RetentionEvent =
  | ({ type: 'step' } & RetentionStep)
  | ({ type: 'run' } & RetentionRun)
  /** A run failed; the next one starts at the usual time. */
  | { type: 'failure'; error: unknown }

/** `onetrip:retention`: a message of type `RetentionEvent` for every step and run of a janitor. */
export const retentionChannel = channel('onetrip:retention')

/** A failed operation. */
export interface StoreFailure {
  code: StoreErrorCode
}

/** `onetrip:error`: a message of type `StoreFailure` for every failed operation. */
export const errorChannel = channel('onetrip:error')

/** A problem that an operator should fix. */
export interface StoreWarning {
  /**
   * Redis may evict sessions; a function that was called at the end of a session failed; the layout of the keys could
   * not be compared with that of the data; the clocks of the janitor and of Redis differ, or could not be compared; the
   * store takes more CPU, because it does not use frames with the installed ioredis.
   */
  code:
    | 'ONETRIP_EVICTION'
    | 'ONETRIP_CALLBACK_FAILED'
    | 'ONETRIP_LAYOUT'
    | 'ONETRIP_CLOCK'
    | 'ONETRIP_FRAMES_OFF'
  message: string
  /** What a callback threw (`ONETRIP_CALLBACK_FAILED`). It may contain data of the application. */
  error?: unknown
}

/**
 * `onetrip:warning`: a message of type `StoreWarning`. Without a subscriber, it becomes a process warning
 * (`process.emitWarning`).
 */
export const warningChannel = channel('onetrip:warning')

export function publishWarning(warning: StoreWarning): void {
  const { code, message, error } = warning
  if (warningChannel.hasSubscribers) warningChannel.publish(warning)
  else
    process.emitWarning(message, { code, detail: error instanceof Error ? error.stack : undefined })
}

/** For a sender: call it when it writes commands to Redis together. */
export function publishRoundTrip(commands: number): void {
  if (roundTripChannel.hasSubscribers) roundTripChannel.publish({ commands } satisfies RoundTrip)
}

/** For a sender: publishes when a connection of this client opens, and when it ends. */
export function publishConnections(redis: Redis): void {
  let isOpen = false
  redis.on('connect', () => {
    isOpen = true
    connectionChannel.publish({})
  })
  // ioredis also emits 'close' for each failed attempt to connect.
  redis.on('close', () => {
    if (isOpen) disconnectionChannel.publish({})
    isOpen = false
  })
}

export function publishError(code: StoreErrorCode): void {
  if (errorChannel.hasSubscribers) errorChannel.publish({ code } satisfies StoreFailure)
}
