import type { Keys } from '@onetrip/session-store'
import type { AuditedRedis } from '@onetrip/stack/testing/audit/audit.ts'
import type { Reading } from './readings.ts'

export interface Fault {
  readonly name: string
  /** Causes the fault and ends it. An interrupt does not stop it in between. */
  run(): Promise<void>
}

/** The Redis server or cluster of a soak. */
export interface SoakRedis {
  /** URL for the API. */
  readonly url: string
  readonly keys: Keys
  /** For the audit. Commands wait while Redis is down. */
  readonly client: AuditedRedis
  readonly faults: readonly Fault[]
  /** The resources of Redis, summed over the nodes of a cluster. Waits while a node is down. */
  read(): Promise<Reading['values']>
}

/** What the programs of a soak are started with. */
export interface SoakScope {
  /** For data and sockets. Removed at the end. */
  readonly directory: string
  /** Aborted when a program has ended unexpectedly. */
  readonly signal: AbortSignal
  fail(reason: Error): void
  /** Registers clean-up, which runs at the end of the test, in reverse order. */
  defer(undo: () => unknown): void
}

/** Longer than the API's deadline for Redis, so that the outcome of some requests is unknown. */
export const PAUSE_MS = 3_000

/** Redis syncs its append-only file before it replies, because an acknowledged view must survive a kill. */
export const durable = { appendfsync: 'always' } as const
