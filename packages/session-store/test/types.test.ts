import type { Cluster, Redis } from 'ioredis'
import { expectTypeOf, test } from 'vitest'
import {
  type Client,
  createSessionStore,
  type Keys,
  type NewSession,
  type PopularItem,
  partitionedKeys,
  type RecordedView,
  type Session,
  type SessionStore,
  StoreError,
  type StoreErrorCode,
  type StrategyName,
  type UserSessionPage,
  type ViewOptions,
} from '../src/index.ts'

// Checked by `npm run typecheck`; at run time these only import the package.

test('what the store takes and gives', () => {
  expectTypeOf(createSessionStore).returns.toEqualTypeOf<SessionStore>()
  expectTypeOf<SessionStore['login']>().toEqualTypeOf<(user: string) => Promise<NewSession>>()
  expectTypeOf<SessionStore['recordView']>().toEqualTypeOf<
    (token: string, item: string, options?: ViewOptions) => Promise<RecordedView>
  >()
  expectTypeOf<SessionStore['checkToken']>().toEqualTypeOf<(token: string) => Promise<Session>>()
  expectTypeOf<SessionStore['userSessions']>().returns.resolves.toEqualTypeOf<UserSessionPage>()
  expectTypeOf<SessionStore['popularItems']>().returns.resolves.toEqualTypeOf<PopularItem[]>()
  expectTypeOf(partitionedKeys).returns.toEqualTypeOf<Keys>()
  expectTypeOf<Redis | Cluster>().toExtend<Client>()
})

test('options that cannot be meant do not compile', () => {
  const build = () => {
    // @ts-expect-error tokens are not optional
    createSessionStore({ url: 'redis://127.0.0.1' })
    // @ts-expect-error no such strategy
    createSessionStore({ url: 'redis://127.0.0.1', tokens: { secrets: [] }, strategy: 'fast' })
    // @ts-expect-error not a whole sender
    createSessionStore({ tokens: { secrets: [] }, sender: { name: 'own' } })
    // @ts-expect-error a client of another library
    createSessionStore({ client: { get() {} }, tokens: { secrets: [] } })
  }
  expectTypeOf(build).toBeFunction()
})

test('an error says what to do, without a cast', () => {
  expectTypeOf<StoreError['code']>().toEqualTypeOf<StoreErrorCode>()
  expectTypeOf<StoreError['retrySafe']>().toEqualTypeOf<boolean>()
  expectTypeOf<StoreError['mayHaveWritten']>().toEqualTypeOf<boolean>()
  expectTypeOf<'batch'>().toExtend<StrategyName>()
  expectTypeOf(StoreError).toBeConstructibleWith('ONETRIP_NOT_SENT', 'why')
})
