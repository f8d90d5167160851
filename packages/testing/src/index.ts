export {
  createTestStore,
  type Failure,
  type FailureOptions,
  type TestStore,
  type TestStoreOptions,
} from './test-store.ts'
