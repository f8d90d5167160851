import type { Keys } from '@onetrip/session-store'
import type { RedisTarget } from '@onetrip/stack/address.ts'
import type { AuditedRedis } from '@onetrip/stack/audit/audit.ts'
import type { Context } from '../../experiment/experiment.ts'
import type { Reading } from './readings.ts'

export interface Fault {
  readonly name: string
  /** Causes it, and puts right what does not heal by itself: never interrupted in between. */
  run(): Promise<void>
}

/** One Redis or a cluster, as a soak needs it. */
export interface SoakRedis {
  /** For the API. */
  readonly target: RedisTarget
  readonly keys: Keys
  /** For the audit. Commands wait while Redis is away. */
  readonly client: AuditedRedis
  readonly faults: readonly Fault[]
  /** What Redis holds; of a cluster the sum of its nodes. Waits while one is away. */
  read(): Promise<Reading['values']>
}

/** Folders and programs of a soak that have to go at its end. */
export interface Ground extends Pick<Context, 'defer' | 'fail' | 'signal'> {
  /** For data and sockets. */
  readonly directory: string
}

/** Longer than an update may take, so that outcomes are unknown. */
export const PAUSE_MS = 3_000

/** Redis syncs its log before it answers: an acknowledged view must survive a kill. */
export const durable = { appendfsync: 'always' } as const
