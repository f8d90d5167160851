export { connectionChannel, type RoundTrip, roundTripChannel } from './diagnostics.ts'
export { StoreError, type StoreErrorCode } from './errors.ts'
export { MAX_NAME_LENGTH, NAME_PATTERN } from './input.ts'
export { documentKeys, type Keys } from './keys.ts'
export {
  createSessionStore,
  type RecentSession,
  type SessionStore,
  type SessionStoreOptions,
} from './store.ts'
export { type StrategyName, type StrategyOptions, strategyNames } from './strategy.ts'
export type { PopularItem, RecordedView, Session, ViewedItem } from './updates.ts'
