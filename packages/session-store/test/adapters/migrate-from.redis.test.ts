import { describe, expect, test } from 'vitest'
import { expressSessionStore } from '../../src/adapters/express-session.ts'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import { fastifySessionStore } from '../../src/adapters/fastify-session.ts'
import { importConnectRedis } from '../../src/adapters/import-connect-redis.ts'
import { warningsOfThisTest } from '../fixture.ts'
import { evictOnly, retentionServer } from '../retention-fixture.ts'
import { IDLE_SECONDS, make, migrationForEachTest } from './migration-fixture.ts'

const server = retentionServer()
const bothForThisTest = migrationForEachTest(server)

describe.each([
  ['express-session', expressSessionStore],
  ['@fastify/session', fastifySessionStore],
] as const)('migrateFrom, %s', (_, make_) => {
  test('moves a session when it is first read', async () => {
    const { store, old } = await bothForThisTest()
    const adapter = make_(store, { migrateFrom: old })
    await make(old, 'one', { user: 'ada' }, 600)
    const before = await old.get('one')
    const found = await Promise.all(Array.from({ length: 20 }, () => adapter.get('one')))
    expect(found).toEqual(found.map(() => before))
    expect(await old.length()).toBe(0)
    expect(await adapter.length()).toBe(1)
    expect(await adapter.get('two')).toBe(null)
  })

  test('what old processes do after an import wins over the copy', async () => {
    const { store, old, send } = await bothForThisTest()
    const ids = ['changed', 'logged out', 'unchanged']
    for (const id of ids) await make(old, id, { user: 'ada', theme: 'dark' }, 600)
    await importConnectRedis(store, { send })
    await make(old, 'changed', { user: 'ada', theme: 'light' }, 600)
    await old.destroy('logged out')
    const adapter = make_(store, { migrateFrom: old })
    expect(await adapter.get('logged out')).toBe(null)
    expect(await adapter.get('changed')).toMatchObject({ theme: 'light' })
    expect(await adapter.get('unchanged')).toMatchObject({ theme: 'dark' })
    expect(await old.length()).toBe(0)
    await make(old, 'logged out', { user: 'ada' }, 600) // a late save of an old process
    expect(await Promise.all(ids.map(async (id) => (await adapter.get(id))?.theme))).toEqual([
      'light',
      undefined,
      'dark',
    ])
    expect(await old.length()).toBe(0)
  })

  test.each([true, false])(
    'an imported session that was used and became idle does not come back (janitor: %s)',
    async (janitor) => {
      const { clock, store, old, send } = await bothForThisTest()
      await make(old, 'one', { user: 'ada', isAdmin: true })
      await importConnectRedis(store, { send })
      const { cookie } = (await make_(store).get('one')) ?? {}
      await externalSessions(store).patch('one', { cookie, isAdmin: undefined })
      const adapter = make_(store, { migrateFrom: old })
      expect(await adapter.get('one')).toEqual({ cookie, user: 'ada' })
      clock.pass(IDLE_SECONDS + 1)
      if (janitor) await store.janitor(evictOnly).runOnce()
      expect(await adapter.get('one')).toBe(null)
      expect(await make_(store, { migrateFrom: old }).get('one')).toBe(null)
    },
  )

  test('a session whose old key could not be destroyed does not come back', async () => {
    const { clock, store, old } = await bothForThisTest()
    await make(old, 'one', { user: 'ada', isAdmin: true })
    const failing = {
      get: old.get.bind(old),
      destroy: (_: string, callback?: (error: unknown) => void) => callback?.(new Error('lost')),
    }
    await expect(make_(store, { migrateFrom: failing }).get('one')).rejects.toThrow('lost')
    const adapter = make_(store, { migrateFrom: old })
    expect(await adapter.get('one')).toMatchObject({ user: 'ada' })
    expect(await old.length()).toBe(1)
    clock.pass(IDLE_SECONDS + 1)
    await store.janitor(evictOnly).runOnce()
    expect(await adapter.get('one')).toBe(null)
    expect(await old.length()).toBe(0)
  })

  test('a copy that an import adds during a read is checked, too', async () => {
    const { store, old } = await bothForThisTest()
    await make(old, 'ended', { user: 'ada' }, 600)
    await make(old, 'changed', { theme: 'dark' }, 600)
    /** An import reads the session, an old process changes it, and the import writes during `get`. */
    const during = async (id: string, change: () => Promise<unknown>) => {
      const stale = JSON.parse(JSON.stringify(await old.get(id)))
      await change()
      return {
        async get(asked: string, callback: (error: unknown, session?: unknown) => void) {
          await externalSessions(store).add(asked, stale, { isCopy: true })
          await old.get(asked, callback)
        },
        destroy: old.destroy.bind(old),
      }
    }
    const logout = await during('ended', () => old.destroy('ended'))
    expect(await make_(store, { migrateFrom: logout }).get('ended')).toBe(null)
    const change = await during('changed', () => make(old, 'changed', { theme: 'light' }, 600))
    const adapter = make_(store, { migrateFrom: change })
    expect(await adapter.get('changed')).toMatchObject({ theme: 'light' })
  })

  test('destroying a session destroys it in both stores', async () => {
    const { store, old } = await bothForThisTest()
    const adapter = make_(store, { migrateFrom: old })
    await make(old, 'one', { user: 'ada' })
    await adapter.destroy('one')
    expect(await old.get('one')).toBe(null)
    // A process of the previous version saves the session late.
    await make(old, 'one', { user: 'ada' })
    expect(await adapter.get('one')).toBe(null)
    expect(await old.get('one')).toBe(null)
  })

  test('a session beyond dataLimits does not lock its user out, and moves once there is no limit', async () => {
    const warnings = warningsOfThisTest()
    const dataLimits = { fieldBytes: 16_384 }
    const { clock, store, old } = await bothForThisTest(undefined, { dataLimits })
    const adapter = make_(store, { migrateFrom: old })
    const large = { cart: 'x'.repeat(20_000) }
    for (const id of ['large one', 'large two']) await make(old, id, large, 600)
    expect(await adapter.get('large one')).toBe(null)
    expect(await adapter.get('large two')).toBe(null)
    expect(warnings).toEqual([
      {
        code: 'ONETRIP_SESSION_NOT_MOVED',
        message: expect.stringMatching(/data field "cart" has 20002 bytes.* Raise dataLimits/),
      },
    ])
    expect(warnings[0]?.message).not.toContain('large')
    const roomy = await server.storeForThisTest(clock, { idleSeconds: IDLE_SECONDS })
    const moved = await make_(roomy, { migrateFrom: old }).get('large one')
    expect(moved).toMatchObject(large)
    expect(await old.length()).toBe(1)
  })
})
