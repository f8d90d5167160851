import { expectTypeOf, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import {
  createSessionStore,
  type Keys,
  type LoginOptions,
  type NewSession,
  type RecordedView,
  type Session,
  type SessionData,
  type SessionStore,
} from '../src/core/index.ts'

// `npm run typecheck` checks these; at run time they only import the package.

test('the types of arguments and results', () => {
  expectTypeOf(createSessionStore).returns.toEqualTypeOf<SessionStore>()
  expectTypeOf<SessionStore['login']>().toEqualTypeOf<
    (user: string, options?: LoginOptions) => Promise<NewSession>
  >()
  const calls = (store: SessionStore) => ({
    view: store.recordView('token', 'item'),
    viewWithData: store.recordView('token', 'item', { data: true }),
    checkWithData: store.checkToken('token', { data: true }),
    checkWithout: store.checkToken('token', { data: false }),
  })
  type Calls = ReturnType<typeof calls>
  expectTypeOf<Calls['view']>().resolves.toEqualTypeOf<RecordedView>()
  expectTypeOf<Calls['viewWithData']>().resolves.toExtend<RecordedView & { data: SessionData }>()
  expectTypeOf<Calls['checkWithData']>().resolves.toExtend<Session & { data: SessionData }>()
  expectTypeOf<Calls['checkWithout']>().resolves.toEqualTypeOf<Session>()
  expectTypeOf<Session['user']>().toEqualTypeOf<string | null>()
  expectTypeOf(partitionedKeys).returns.toEqualTypeOf<Keys>()
})

test('invalid options do not compile', () => {
  const build = () => {
    // @ts-expect-error tokens are required
    createSessionStore({ url: 'redis://127.0.0.1' })
    // @ts-expect-error no such strategy
    createSessionStore({ url: 'redis://127.0.0.1', tokens: { secrets: [] }, strategy: 'fast' })
    // @ts-expect-error an incomplete sender
    createSessionStore({ tokens: { secrets: [] }, sender: { name: 'own' } })
    // @ts-expect-error a client of another library
    createSessionStore({ client: { get() {} }, tokens: { secrets: [] } })
  }
  expectTypeOf(build).toBeFunction()
})
