import { expectTypeOf, test } from 'vitest'
import {
  type LoginOptions,
  type NewSession,
  type RecordedView,
  type Session,
  type SessionData,
  SessionStore,
  type SessionStoreOptions,
} from '../src/index.ts'
import type { FastifySessionsOptions, RequestSession } from '../src/web/fastify.ts'

// `npm run typecheck` checks these; at run time they only import the package.

test('the types of arguments and results', () => {
  const create = (options: SessionStoreOptions) => new SessionStore(options)
  expectTypeOf(create).returns.toEqualTypeOf<SessionStore>()
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
})

test('invalid options do not compile', () => {
  const build = () => {
    // @ts-expect-error tokens are required
    new SessionStore({ redis: 'redis://127.0.0.1' })
    // @ts-expect-error an incomplete sender
    new SessionStore({ tokens: { secrets: [] }, sender: { name: 'own' } })
    // @ts-expect-error a client of another library
    new SessionStore({ client: { get() {} }, tokens: { secrets: [] } })
  }
  expectTypeOf(build).toBeFunction()
})

interface Fields {
  cart: string[]
  theme: 'light' | 'dark'
}

test('typed session data', () => {
  const create = (options: SessionStoreOptions) => new SessionStore<Fields>(options)
  expectTypeOf(create).returns.toEqualTypeOf<SessionStore<Fields>>()
  const uses = async (store: SessionStore<Fields>, session: RequestSession<Fields>) => {
    const { fields } = await store.data('token')
    expectTypeOf(fields).toEqualTypeOf<{ cart?: string[]; theme?: 'light' | 'dark' }>()
    const results = [
      await session.data(),
      (await store.checkToken('token', { data: true })).data,
      (await store.recordView('token', 'item', { data: true })).data,
      (await session.check({ data: true })).data,
      (await session.find({ data: true }))?.data,
      (await session.recordView('item', { data: true })).data,
    ] as const
    expectTypeOf(results[0]).toEqualTypeOf<SessionData<Fields>>()
    expectTypeOf(results).items.toEqualTypeOf<SessionData<Fields> | undefined>()
    await store.patch('token', { cart: ['book'], theme: undefined })
    // @ts-expect-error no such field
    await store.patch('token', { crat: ['book'] })
    // @ts-expect-error no such field
    await session.patch({ crat: ['book'] })
    // @ts-expect-error a value of another type
    await store.patch('token', { theme: 'blue' })
    // @ts-expect-error a value of another type
    await session.patch({ theme: 'blue' })
    // @ts-expect-error no such field
    fields.crat
    return { store } satisfies FastifySessionsOptions
  }
  expectTypeOf(uses).toBeFunction()
})

test('without declared fields, session data has any fields with unknown values', () => {
  const uses = async (store: SessionStore, session: RequestSession) => {
    expectTypeOf((await store.data('token')).fields.cart).toEqualTypeOf<unknown>()
    await session.patch({ cart: ['book'], more: undefined })
    const fields: Record<string, unknown> = (await session.data()).fields
    await store.patch('token', fields)
  }
  expectTypeOf(uses).toBeFunction()
})
