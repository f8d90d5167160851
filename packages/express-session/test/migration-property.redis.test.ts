import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import type { SessionStore } from '../../src/core/index.ts'
import { type Clock, evictOnly, retentionServer } from '../retention-fixture.ts'
import { IDLE_SECONDS } from './migration-fixture.ts'
import {
  Expected,
  type Fields,
  Interleaving,
  killed,
  killedAfter,
  OldWorld,
  requestOf,
} from './migration-world.ts'

const server = retentionServer()
const cookie = {}
const users = { userOf: () => 'ada' }

/** The sessions before a migration. */
function oldWorld(count: number) {
  const old = new OldWorld()
  const expected = new Expected()
  for (let index = 0; index < count; index++) {
    const fields = { cookie, a: index }
    old.save(expected.create(fields), fields)
  }
  return { old, expected }
}

interface Step {
  name: string
  /** Which session. */
  pick: number
  field: string
  /** After how many calls of a store the process is killed. */
  kill: number | null
}

const anyStep = (names: string[], kill: fc.Arbitrary<number | null>): fc.Arbitrary<Step> =>
  fc.record({
    name: fc.constantFrom(...names),
    pick: fc.nat(),
    field: fc.constantFrom('a', 'b'),
    kill,
  })

const oldSteps = ['old save', 'old login', 'old logout', 'import']
const newSteps = [
  'new read',
  'new save',
  'new login',
  'new logout',
  'end of all sessions of the user',
  'import',
  'idle',
  'idle, janitor',
]
const never = fc.constant(null)
const sometimes = fc.option(fc.nat(6), { freq: 2 })

interface World {
  store: SessionStore
  clock: Clock
  old: OldWorld
  expected: Expected
}

async function run({ store, clock, old, expected }: World, steps: readonly Step[]): Promise<void> {
  let value = 0
  for (const { name, pick, field, kill } of steps) {
    const id = `s${pick % expected.sessions.length}`
    const session = expected.get(id)
    const changed = { ...session.fields, [field]: `value ${value++}` }
    if (name === 'import') await old.import(store, undefined, users)
    else if (name.startsWith('end')) {
      const { sessions } = await externalSessions(store).ofUser('ada')
      await store.endUserSessions('ada')
      expected.endInNew(sessions.map(({ id }) => id))
    } else if (name.startsWith('idle')) {
      clock.pass(IDLE_SECONDS + 1)
      expected.idle()
      if (name === 'idle, janitor') await store.janitor(evictOnly).runOnce()
    } else if (name.startsWith('new')) {
      const request = requestOf(store, old, kill === null ? undefined : killedAfter(kill), users)
      const act = async () => {
        if (!expected.check(id, await request.get(id))) return
        if (name === 'new save') {
          await request.patch(id, { [field]: changed[field] })
          session.fields = changed
        }
        if (name === 'new logout' || name === 'new login') {
          session.is = 'unknown'
          await request.destroy(id)
          session.is = 'ended'
          expect(old.read(id)).toBe(undefined)
          if (name === 'new login')
            await requestOf(store, old).create(expected.create(changed), changed)
        }
      }
      await act().catch((error: unknown) => {
        if (error !== killed) throw error
      })
    } else {
      const found = old.read(id)
      if (found === undefined) continue
      expected.checkOld(id, found)
      if (name === 'old save') {
        session.fields = changed
        old.save(id, changed)
      } else {
        old.destroy(id)
        session.is = 'ended'
        if (name === 'old login') old.save(expected.create(changed), changed)
      }
    }
  }
  for (const index of [...expected.sessions.keys()].flatMap((index) => [index, index])) {
    expected.check(`s${index}`, await requestOf(store, old, undefined, users).get(`s${index}`))
  }
}

describe('no step of a migration revives a session, brings back an id from before a login, or loses a change', () => {
  const worldOf = async () => {
    const { clock, store } = await server.start({ idleSeconds: IDLE_SECONDS })
    return async (): Promise<World> => {
      await server.redis.flushall()
      return { store, clock, ...oldWorld(3) }
    }
  }

  test('if old processes stop before new ones start, even if new ones are killed', async () => {
    const begin = await worldOf()
    const before = fc.array(anyStep(oldSteps, never), { maxLength: 12 })
    const after = fc.array(anyStep(newSteps, sometimes), { maxLength: 25 })
    const property = fc.asyncProperty(before, after, async (first, second) => {
      await run(await begin(), [...first, ...second])
    })
    await fc.assert(property, { numRuns: 300 })
  })

  test('if old and new processes take turns', async () => {
    const begin = await worldOf()
    const steps = fc.array(anyStep([...oldSteps, ...newSteps], never), { maxLength: 35 })
    const property = fc.asyncProperty(steps, async (all) => await run(await begin(), all))
    await fc.assert(property, { numRuns: 300 })
  })
})

const anyChange = fc.constantFrom('nothing', 'save', 'logout')
const anyChoices = fc.array(fc.nat(5), { minLength: 60, maxLength: 60 })

test('parallel requests and an import in any order: all changes are kept, and a logout is final', async () => {
  const { clock, store } = await server.start({ idleSeconds: IDLE_SECONDS })
  const check = async (choices: readonly number[], change: string, logsOut: boolean) => {
    await server.redis.flushall()
    const { old } = oldWorld(1)
    const expected: Fields = { cookie, a: 0 }
    const { start, gate, finished } = new Interleaving(choices)
    const request = async (field: string) => {
      const { get, patch } = requestOf(store, old, gate)
      const found = await get('s0')
      if (change === 'logout') return expect(found).toBe(null)
      if (found === null && logsOut) return
      expect(found).toMatchObject({ a: expected.a })
      const saved = await patch('s0', { [field]: 1 })
      expect(saved || logsOut).toBe(true)
      expected[field] = 1
    }
    const logout = async () => {
      await requestOf(store, old, gate).destroy('s0')
      expect(await requestOf(store, old).get('s0')).toBe(null)
    }
    // The import may read before the old processes stop, and write after the new ones have started.
    start(() => old.import(store, gate))
    start(async () => {
      await gate()
      if (change === 'save') old.save('s0', Object.assign(expected, { a: 'changed' }))
      if (change === 'logout') old.destroy('s0')
      start(() => request('b'))
      start(() => request('c'))
      if (logsOut) start(logout)
    })
    await finished
    const found = await requestOf(store, old).get('s0')
    expect(found ?? null).toEqual(logsOut || change === 'logout' ? null : expected)
    clock.pass(IDLE_SECONDS + 1)
    await store.janitor(evictOnly).runOnce()
    expect(await requestOf(store, old).get('s0')).toBe(null)
  }
  const property = fc.asyncProperty(anyChoices, anyChange, fc.boolean(), check)
  await fc.assert(property, { numRuns: 1_000 })
})
