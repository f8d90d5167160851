import { describe, expect, test } from 'vitest'
import { expressSessionStore } from '../../src/adapters/express-session.ts'
import { fastifySessionStore } from '../../src/adapters/fastify-session.ts'
import { warningsOfThisTest } from '../fixture.ts'
import { retentionServer } from '../retention-fixture.ts'
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
    expect(await expressSessionStore(store).ids()).toEqual(['one'])
    expect(await adapter.get('two')).toBe(null)
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
    expect(warnings).toMatchObject([{ code: 'ONETRIP_SESSION_NOT_MOVED' }])
    expect(warnings[0]?.message).not.toContain('large')
    const roomy = await server.storeForThisTest(clock, { idleSeconds: IDLE_SECONDS })
    const moved = await make_(roomy, { migrateFrom: old }).get('large one')
    expect(moved).toMatchObject(large)
    expect(await old.length()).toBe(1)
  })
})
