import './node-version.ts'

export { longLivedConnection, type ServerLocation, safeRedisOptions } from './connections/client.ts'
export { type CommandStats, commandStats, parseInfo } from './connections/redis-info.ts'
export { parseRedisUrl } from './connections/redis-url.ts'
export type { DataPatch, SessionData, SessionDataFields } from './data/data.ts'
export {
  type BatchTrace,
  batchChannel,
  connectionChannel,
  disconnectionChannel,
  errorChannel,
  type OperationTrace,
  operationChannel,
  type RetentionEvent,
  type RoundTrip,
  retentionChannel,
  roundTripChannel,
  type StoreFailure,
  type StoreWarning,
  warningChannel,
} from './diagnostics.ts'
export { repeatable, StoreError, type StoreErrorCode, storeErrors } from './errors.ts'
export { MAX_NAME_LENGTH, NAME_PATTERN } from './input.ts'
export { articleKeys, type Keys, prefixedKeys } from './keys.ts'
export type { StoreInfo } from './lifecycle.ts'
export type { Command, Operation, Reply } from './operation.ts'
export type { Outcome } from './outcomes.ts'
export type { Janitor } from './retention/janitor.ts'
export type { JanitorOptions } from './retention/janitor-options.ts'
export { batching } from './sending/batching.ts'
export type { NodeState } from './sending/nodes.ts'
export type { Sender, Topology } from './sending/sender.ts'
export { type StrategyName, strategyNames } from './sending/strategies.ts'
export type { Attempts } from './sessions/attempts.ts'
export type { NewSession, RecentSession } from './sessions/logins.ts'
export type { UserSession } from './sessions/own-sessions.ts'
export type { SessionEndListener } from './sessions/session-ends.ts'
export type { Session } from './sessions/session-operations.ts'
export type { PopularItem, RecordedView, ViewedItem } from './sessions/view-operations.ts'
export { updateToken } from './sessions/view-operations.ts'
export type { SessionStore } from './store.ts'
export { createSessionStore } from './store.ts'
export type { LoginOptions, SessionStoreOptions, ViewOptions } from './store-options.ts'
