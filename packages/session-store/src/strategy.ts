import type { Update } from './updates.ts'

/** A way of sending an update to Redis. All strategies send the same commands in the same order. */
export interface Strategy {
  readonly name: StrategyName
  /**
   * Sends the update and reads its replies.
   *
   * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
   *   `ONETRIP_REFUSED`.
   */
  run<Result>(update: Update<Result>): Promise<Result>
  /**
   * Resolves once Redis can be used.
   *
   * @throws StoreError `ONETRIP_NOT_SENT` when it cannot within `timeoutMs`.
   */
  ready(timeoutMs: number): Promise<void>
  /** Finishes what is in flight, then closes every connection. */
  close(): Promise<void>
}

export const strategyNames = ['naive', 'sequential', 'pipeline'] as const
export type StrategyName = (typeof strategyNames)[number]

export interface StrategyOptions {
  /** `redis://`, `rediss://` or `unix:///path/to/socket`. */
  url: string
  /** Connections of the pool; the naive strategy has none. Default 1. */
  poolSize?: number
  /** How long an update may take, connecting included where it connects. Default 2,000. */
  deadlineMs?: number
  /** Updates in flight on one connection (naive: in all), beyond which one is refused. Default 1,000. */
  maxInFlight?: number
}
