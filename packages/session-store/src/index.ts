export type { Attempts } from './attempts.ts'
export {
  type Client,
  createCluster,
  longLivedConnection,
  safeClusterOptions,
  safeRedisOptions,
} from './client.ts'
export { MAX_CURSOR_LENGTH } from './cursor.ts'
export {
  batchChannel,
  connectionChannel,
  disconnectionChannel,
  errorChannel,
  type RetentionEvent,
  type RetentionRun,
  type RetentionStep,
  type RetentionWork,
  type RoundTrip,
  retentionChannel,
  roundTripChannel,
  type SentBatch,
  type StoreFailure,
  type StoreWarning,
  warningChannel,
} from './diagnostics.ts'
export { StoreError, type StoreErrorCode } from './errors.ts'
export { MAX_NAME_LENGTH, NAME_PATTERN } from './input.ts'
export type { Janitor, JanitorOptions } from './janitor.ts'
export {
  documentKeys,
  type Keys,
  partitionedKeys,
  prefixedKeys,
  type SessionsPart,
} from './keys.ts'
export type { Outcome } from './outcomes.ts'
export type { PoolState } from './pool.ts'
export { parseInfo } from './redis-info.ts'
export { parseRedisUrl, type RedisAddress, redisAddress } from './redis-url.ts'
export { createSessionStore, type SessionStore } from './store.ts'
export type {
  NewSession,
  PageOptions,
  RecentSession,
  SessionStoreOptions,
  UserSession,
  UserSessionPage,
} from './store-types.ts'
export { type Sender, strategyOf } from './strategies/own.ts'
export {
  type ScanPosition,
  type ScanRequest,
  type ScanStep,
  type Strategy,
  type StrategyName,
  type StrategyOptions,
  strategyNames,
} from './strategy.ts'
export type {
  Command,
  PopularItem,
  RecordedView,
  Reply,
  Session,
  Update,
  ViewedItem,
} from './updates.ts'
