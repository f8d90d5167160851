import './node-version.ts'

export { type Command, firstKeyOf, type Operation, type Reply } from './command.ts'
export type { Attempts } from './count-attempts.ts'
export type { DataPatch, SessionData, SessionDataFields } from './data/read.ts'
export {
  type BatchTrace,
  batchChannel,
  connectionChannel,
  disconnectionChannel,
  errorChannel,
  type OperationTrace,
  operationChannel,
  publishConnections,
  publishRoundTrip,
  type RetentionEvent,
  type RoundTrip,
  retentionChannel,
  roundTripChannel,
  type StoreFailure,
  type StoreWarning,
  warningChannel,
} from './diagnostics.ts'
export { repeatable, StoreError, type StoreErrorCode, storeErrors } from './errors.ts'
export { checkedOptions, checkName, MAX_NAME_LENGTH, NAME_PATTERN } from './input.ts'
export { articleKeys, type Keys, prefixedKeys } from './keys.ts'
export type { LoginOptions, SessionStoreOptions, ViewOptions } from './options.ts'
export type { NodeState } from './readiness.ts'
export { batching } from './redis/batching.ts'
export {
  longLivedConnection,
  type RedisOptions,
  retryDelayMs,
  shortLivedConnection,
} from './redis/connection.ts'
export { isRead, type Outcome } from './redis/outcomes.ts'
export { disconnect } from './redis/pool.ts'
export { parseInfo } from './redis/redis-info.ts'
export {
  parseRedisUrl,
  type RedisAddress,
  redisUrlOf,
  secretIn,
  withCredentials,
} from './redis/redis-url.ts'
export type { NodeSender, Sender } from './redis/sender.ts'
export { subscribeWith } from './redis/subscribing.ts'
export { sendWith } from './redis/write-frame.ts'
export { createSessionStore } from './removed-options.ts'
export type { Janitor } from './retention/janitor.ts'
export type { JanitorOptions } from './retention/options.ts'
export type { Session } from './sessions/check.ts'
export type { RecentSession, UserSession } from './sessions/list.ts'
export { type NewSession, SessionStore, type StoreInfo } from './store.ts'
export type { PopularItem, ViewedItem } from './views/read.ts'
export { type RecordedView, writeSession } from './views/record.ts'
