import './node-version.ts'

export { longLivedConnection, type ServerLocation, safeRedisOptions } from './connections/client.ts'
export { type CommandStats, commandStats, parseInfo } from './connections/redis-info.ts'
export { parseRedisUrl, type RedisAddress, redisAddress } from './connections/redis-url.ts'
export type { DataOption, MaybeData, PatchOptions, SessionData } from './data/data.ts'
export type { DataLimits } from './data/data-fields.ts'
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
  type StoreWarning,
  type UpdateTrace,
  updateChannel,
  warningChannel,
} from './diagnostics.ts'
export { repeatable, StoreError, type StoreErrorCode, storeErrors } from './errors.ts'
export { MAX_KEY_LENGTH, MAX_NAME_LENGTH, NAME_PATTERN } from './input.ts'
export { articleKeys, type Keys, prefixedKeys, type SessionsPart } from './keys.ts'
export {
  type Command,
  type CommandList,
  type PopularItem,
  type RecordedView,
  type Reply,
  type Session,
  type Update,
  updateToken,
  type ViewedItem,
} from './operations.ts'
export type { Outcome } from './outcomes.ts'
export type { Janitor } from './retention/janitor.ts'
export type { JanitorOptions } from './retention/janitor-options.ts'
export { batching } from './sending/batching.ts'
export type { NodeState } from './sending/nodes.ts'
export type { NodeResult } from './sending/runner.ts'
export type { Connections, NodeSender, Sender, Topology } from './sending/sender.ts'
export { type StrategyName, type StrategyOptions, strategyNames } from './sending/strategies.ts'
export type { Attempts } from './sessions/attempts.ts'
export { MAX_CURSOR_LENGTH } from './sessions/cursor.ts'
export type { ExportedSession, UserExport, WalkOptions } from './sessions/user-records.ts'
export { createSessionStore } from './store.ts'
export type {
  LoginOptions,
  PageOptions,
  SessionStoreOptions,
  ViewOptions,
} from './store-options.ts'
export type {
  NewSession,
  RecentSession,
  SessionStore,
  StoreInfo,
  UserSession,
  UserSessionPage,
} from './store-types.ts'
