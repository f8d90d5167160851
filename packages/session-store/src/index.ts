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
  type BatchTrace,
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
  type StoreFailure,
  type UpdateTrace,
  updateChannel,
} from './diagnostics.ts'
export { StoreError, type StoreErrorCode } from './errors.ts'
export { MAX_KEY_LENGTH, MAX_NAME_LENGTH, NAME_PATTERN } from './input.ts'
export type { Janitor, JanitorOptions } from './janitor.ts'
export { documentKeys, type Keys, partitionedKeys, type SessionsPart } from './keys.ts'
export type { Outcome } from './outcomes.ts'
export { parseInfo } from './redis-info.ts'
export { parseRedisUrl, type RedisAddress } from './redis-url.ts'
export type { PoolState } from './runner.ts'
export type { ScanPosition, ScanRequest, ScanStep, Sender } from './sender.ts'
export { batching } from './senders/batching.ts'
export { type NodeRedisClient, nodeRedisSender } from './senders/node-redis.ts'
export { createSessionStore } from './store.ts'
export type {
  NewSession,
  PageOptions,
  RecentSession,
  SessionStore,
  SessionStoreOptions,
  UserSession,
  UserSessionPage,
  ViewOptions,
} from './store-types.ts'
export { type StrategyName, strategyNames } from './strategies.ts'
export type { StrategyOptions } from './strategy-options.ts'
export type {
  Command,
  CommandList,
  PopularItem,
  RecordedView,
  Reply,
  Session,
  Update,
  ViewedItem,
} from './updates.ts'
