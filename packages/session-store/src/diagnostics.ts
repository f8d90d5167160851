import { channel, tracingChannel } from 'node:diagnostics_channel'
import type { StoreErrorCode } from './errors.ts'

/** One write of commands to Redis whose replies are then waited for. */
export interface RoundTrip {
  /** How many commands it carried. */
  commands: number
}

/** `onetrip:round-trip`: a message of type `RoundTrip` for every round trip of an update. */
export const roundTripChannel = channel('onetrip:round-trip')

/** The message of an update on `onetrip:update`. It has names and codes, but no keys and no values. */
export class UpdateTrace {
  readonly #commands: readonly (readonly [name: string, ...args: unknown[]])[]
  /** Why the update failed; `unknown` for an error without a code. */
  errorCode?: string

  constructor(commands: readonly (readonly [name: string, ...args: unknown[]])[]) {
    this.#commands = commands
  }

  /** The names of its commands, in order. */
  get commands(): string[] {
    return this.#commands.map(([name]) => name)
  }

  // The tracing channel sets these two. They may hold users' data, so neither is kept.
  set result(_: unknown) {}
  set error(error: unknown) {
    this.errorCode = String((error as { code?: unknown } | undefined)?.code ?? 'unknown')
  }
}

/** `onetrip:update`, a tracing channel: an update, from the call until its result. */
export const updateChannel = tracingChannel<UpdateTrace>('onetrip:update')

/** The message of a batch on `onetrip:batch`: updates of concurrent callers that travel together. */
export class BatchTrace {
  readonly updates: number
  /** After merging. */
  readonly commands: number
  /** The messages of its updates on `onetrip:update`, if that channel has subscribers. */
  readonly traces: readonly UpdateTrace[]
  /** From the first write to the last reply. Set at the end, as is `failed`. */
  durationMs = 0
  /** Updates of which a command was refused or its reply lost. */
  failed = 0

  constructor(updates: number, commands: number, traces: readonly UpdateTrace[]) {
    this.updates = updates
    this.commands = commands
    this.traces = traces
  }

  set result(_: unknown) {}
  set error(_: unknown) {}
}

/** `onetrip:batch`, a tracing channel: a batch, from its first write to its last reply. */
export const batchChannel = tracingChannel<BatchTrace>('onetrip:batch')

/** `onetrip:connection`: a message for every connection to Redis that was opened. */
export const connectionChannel = channel('onetrip:connection')

/** `onetrip:disconnection`: a message for every connection of a pool that was closed or lost. */
export const disconnectionChannel = channel('onetrip:disconnection')

/** What the janitor changed. */
export interface RetentionWork {
  /** Sessions that were ended: idle, or beyond the maximum. */
  evicted: number
  /** Items whose counts were dropped: beyond those kept, or halved to nothing. */
  itemsDropped: number
  itemsHalved: number
  /** Leftovers of sessions that were removed; of one session there may be several. */
  swept: number
}

/** One step of the janitor: at most one batch of what it removes or changes. */
export interface RetentionStep extends RetentionWork {
  /** When it evicted: how many sessions are still beyond the maximum. */
  surplus?: number
  durationMs: number
}

/** One run of the janitor. */
export interface RetentionRun extends RetentionWork {
  /** False: another worker is at it, and this run did nothing. */
  worked: boolean
  /** A sweep is not at its end: the next run goes on with it. */
  sweeping: boolean
  /** Why it ended before its work was done. */
  interrupted?: 'stopped' | 'lock lost'
  durationMs: number
}

/** What the janitor tells while it works. */
export type RetentionEvent =
  | ({ type: 'step' } & RetentionStep)
  | ({ type: 'run' } & RetentionRun)
  /** A run failed, and the next begins as planned. */
  | { type: 'failure'; error: unknown }

/** `onetrip:retention`: a message of type `RetentionEvent` for every step and run of a janitor. */
export const retentionChannel = channel('onetrip:retention')

/** Something that the store's caller was told as an error. */
export interface StoreFailure {
  code: StoreErrorCode
}

/** `onetrip:error`: a message of type `StoreFailure` for every error that an update ended with. */
export const errorChannel = channel('onetrip:error')

/** Something in the configuration that an operator should change. */
export interface StoreWarning {
  /**
   * Redis may evict sessions; a session cookie lives longer than its session; the janitor found keys of
   * another program among its own; the number of partitions was not compared with that of the data.
   */
  code:
    | 'ONETRIP_EVICTION'
    | 'ONETRIP_COOKIE_OUTLIVES_SESSION'
    | 'ONETRIP_FOREIGN_KEY'
    | 'ONETRIP_PARTITIONS'
  message: string
}

/**
 * `onetrip:warning`: a message of type `StoreWarning`. Without a subscriber it becomes a warning of the
 * process (`process.emitWarning`).
 */
export const warningChannel = channel('onetrip:warning')

export function publishWarning(warning: StoreWarning): void {
  if (warningChannel.hasSubscribers) warningChannel.publish(warning)
  else process.emitWarning(warning.message, { code: warning.code })
}

export function publishRoundTrip(commands: number): void {
  if (roundTripChannel.hasSubscribers) roundTripChannel.publish({ commands } satisfies RoundTrip)
}

export function publishConnection(): void {
  if (connectionChannel.hasSubscribers) connectionChannel.publish({})
}

export function publishDisconnection(): void {
  if (disconnectionChannel.hasSubscribers) disconnectionChannel.publish({})
}

export function publishError(code: StoreErrorCode): void {
  if (errorChannel.hasSubscribers) errorChannel.publish({ code } satisfies StoreFailure)
}
