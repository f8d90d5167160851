import { describe, expect, test } from 'vitest'
import { externalSessions } from '../src/adapters/external-sessions.ts'
import { type SessionStore, StoreError } from '../src/core/index.ts'
import { endSessions } from '../src/core/sessions/session-operations.ts'
import { recordView, undoView } from '../src/core/sessions/view-operations.ts'
import { bridgeStores, finishMigration, migrate } from '../src/migration/index.ts'
import {
  forgetMoving,
  installSessions,
  listSessions,
  takeSessions,
} from '../src/migration/move-sessions.ts'
import { createMover } from '../src/migration/mover.ts'
import { gone, idOf } from './fixture.ts'
import { inOrder, interleavings } from './interleavings.ts'
import { from, migrationOfThisFile, to } from './migration-fixture.ts'
import { runUpdateToken } from './update-token.ts'

const world = migrationOfThisFile()

test('a view and the move of its session, in all orders: exactly one store has the view, once', async () => {
  const sides = await world.sides()
  const { store } = sides.from
  const { token } = await store.login('ada')
  const id = idOf(token)
  const view = recordView(from, { id, item: 'tea' }, world.clock.ms)
  const take = takeSessions(from, [[id, 'ada']])
  for (const order of interleavings(view.commands.length, take.commands.length)) {
    await Promise.all(world.admins.map((admin) => admin.flushall()))
    await runUpdateToken(store, token, 'ada')
    const [seen, taken] = await inOrder(world.admins[0], order, [view, take])
    expect(taken).toMatchObject([{ id, user: 'ada' }])
    if (seen === undefined) await store.run(undoView(from, { id, item: 'tea' }))
    await migrate(sides)
    if (seen === undefined) await sides.to.store.recordView(token, 'tea')
    expect(await sides.to.store.viewedItems(token)).toMatchObject([{ item: 'tea' }])
    expect(await sides.to.store.popularItems()).toEqual([{ item: 'tea', views: 1 }])
    expect(await world.admins[0].keys('viewed:?*')).toEqual([])
  }
})

test('a logout and the move of its session, in all orders: the session ends and does not come back', async () => {
  const sides = await world.sides()
  const { token } = await sides.from.store.login('ada')
  const id = idOf(token)
  const logout = endSessions(from, [id])
  const take = takeSessions(from, [[id, 'ada']])
  for (const order of interleavings(logout.commands.length, take.commands.length)) {
    await Promise.all(world.admins.map((admin) => admin.flushall()))
    await runUpdateToken(sides.from.store, token, 'ada')
    const [[user], taken] = await inOrder(world.admins[0], order, [logout, take])
    expect(taken).toHaveLength(user === undefined ? 1 : 0)
    await migrate(sides)
    expect(await sides.to.store.logout(token)).toBe(user === undefined)
    await expect(sides.to.store.checkToken(token)).rejects.toMatchObject(gone)
  }
})

describe.each(['source', 'target'] as const)(
  'a session in an interrupted move, with the %s as home,',
  (home) => {
    /** Two sessions of ada. The first has left the source. */
    async function halfMoved() {
      const sides = await world.sides()
      const bridge = await world.bridge(home)
      const { token } = await sides.from.store.login('ada', { label: 'Firefox' })
      const { token: other } = await sides.from.store.login('ada')
      await sides.from.store.recordView(token, 'tea')
      await sides.from.store.run(takeSessions(from, [[idOf(token), 'ada']]))
      const completeMove = () => createMover(sides).completeAll()
      return { sides, bridge, token, other, completeMove }
    }

    test('is in the list and in the export of the user', async () => {
      const { bridge, token, other } = await halfMoved()
      const ids = [token, other].map(idOf).sort()
      for (const found of [await bridge.userSessions(other), await bridge.exportUser('ada')]) {
        expect(found.sessions.map(({ id }) => id).sort()).toEqual(ids)
        const moved = found.sessions.find(({ id }) => id === idOf(token))
        expect(moved?.label).toBe('Firefox')
      }
    })

    test('is not reported as ended until it ends', async () => {
      const { bridge, token, other } = await halfMoved()
      const ended: string[] = []
      const held = [token, other, (await bridge.login('ada')).token].map(idOf)
      let isBack = 0
      await bridge.onSessionEnded({
        ended: (id) => void ended.push(id),
        held: () => held,
        regained: () => void isBack++,
      })
      for (const admin of world.admins) await admin.client('KILL', 'TYPE', 'PUBSUB')
      await expect.poll(() => isBack).toBe(2)
      await bridge.logout(other)
      await expect.poll(() => ended).toContain(idOf(other))
      await bridge.logout(token)
      await expect.poll(() => ended).toContain(idOf(token))
      expect(new Set(ended)).toEqual(new Set([idOf(other), idOf(token)]))
    })

    test.each<[string, (bridge: SessionStore, token: string, other: string) => Promise<unknown>]>([
      ['logout', (bridge, token) => bridge.logout(token)],
      ['revokeSession', (bridge, token, other) => bridge.revokeSession(other, idOf(token))],
      ['logoutEverywhere', (bridge, _, other) => bridge.logoutEverywhere(other)],
      [
        'endOtherSessions',
        async (bridge, _, other) => (await bridge.endOtherSessions(other)) === 1,
      ],
      ['endUserSessions', (bridge) => bridge.endUserSessions('ada')],
      ['eraseUser', (bridge) => bridge.eraseUser('ada')],
    ])('ends for good by %s', async (_, end) => {
      const { sides, bridge, token, other, completeMove } = await halfMoved()
      expect(await end(bridge, token, other)).toSatisfy((ended) => ended === true || ended === 2)
      await completeMove()
      for (const store of [bridge, sides.to.store]) {
        await expect(store.checkToken(token)).rejects.toMatchObject(gone)
      }
    })
  },
)

test.each(['source', 'target'] as const)(
  'with the %s as home, logoutEverywhere can be repeated after a failure of any operation of the bridge',
  async (home) => {
    const sides = await world.sides()
    let operations = 0
    let failing = 0
    const failingSide = <Side extends { store: SessionStore }>(side: Side): Side => ({
      ...side,
      store: {
        ...side.store,
        async run(operation) {
          if (++operations === failing) throw new StoreError('ONETRIP_NOT_SENT', 'no connection')
          return await side.store.run(operation)
        },
      },
    })
    const [source, target] = [failingSide(sides.from), failingSide(sides.to)]
    const clock = () => world.clock.ms
    const bridge = bridgeStores({ from: source, to: target, home, clock })
    await bridge.ready()
    const left = async () => (await bridge.exportUser('ada')).sessions.length
    for (let at = 1; ; at++) {
      const stores = [sides.from, sides.from, sides.to, sides.to].map(({ store }) => store)
      const [own] = await Promise.all(stores.map((store) => store.login('ada')))
      operations = 0
      failing = at
      const end = () => bridge.logoutEverywhere(own?.token ?? '')
      const result = await end().catch((error: unknown) => error)
      failing = 0
      if (result instanceof StoreError) {
        expect(result).toMatchObject({ statusCode: 503, retrySafe: true })
        const sessions = await left()
        expect(result.mayHaveWritten).toBe(sessions < 4)
        expect(await end()).toBe(sessions)
      } else expect(result).toBe(4)
      expect(await left()).toBe(0)
      if (operations < at) break
    }
  },
)

test('a late retry of a step does not bring back a session that has ended since', async () => {
  const { from: source, to: target } = await world.sides()
  const { token } = await source.store.login('ada')
  const sessions = await source.store.run(takeSessions(from, [[idOf(token), 'ada']]))
  const arrive = async () => {
    await target.store.run(installSessions(to, sessions))
    await target.store.run(listSessions(to, sessions))
    await source.store.run(forgetMoving(from, sessions))
  }
  await arrive()
  expect(await target.store.checkToken(token)).toMatchObject({ user: 'ada' })
  expect(await target.store.logout(token)).toBe(true)
  await arrive()
  await expect(target.store.checkToken(token)).rejects.toMatchObject(gone)
  await finishMigration({ from: source, to: target })
  await expect(target.store.run(installSessions(to, sessions))).rejects.toThrow('FINISHED')
})

test('a view retried with the same key after the move counts once', async () => {
  const sides = await world.sides()
  const bridges = [await world.bridge('source'), await world.bridge('target')]
  const { token } = await sides.from.store.login('ada')
  const options = { idempotencyKey: 'a key' }
  await sides.from.store.recordView(token, 'tea', options)
  await createMover(sides).move([idOf(token)])
  for (const bridge of bridges) {
    expect(await bridge.recordView(token, 'tea', options)).toEqual({ user: 'ada', views: 1 })
  }
  await migrate(sides)
  await finishMigration(sides)
  expect(await sides.to.store.popularItems()).toEqual([{ item: 'tea', views: 1 }])
})

test('parallel requests of one session to processes with either home: all of them count', async () => {
  const sides = await world.sides()
  const bridges = [await world.bridge('source'), await world.bridge('target')]
  const rounds = 40
  for (let round = 0; round < rounds; round++) {
    const { token } = await sides.from.store.login('ada')
    const requests = bridges.flatMap((bridge, index) =>
      Array.from({ length: 4 }, (_, number) => [
        bridge.recordView(token, `item ${index}${number}`),
        bridge.patch(token, { [`field ${index}${number}`]: round }),
      ]),
    )
    await Promise.all([...requests.flat(), createMover(sides).move([idOf(token)])])
    const { store } = sides.to
    expect(await store.viewedItems(token)).toHaveLength(8)
    expect(await store.data(token)).toMatchObject({ version: 8 })
    expect(Object.keys((await store.data(token)).fields)).toHaveLength(8)
  }
  await finishMigration(sides)
  const counts = await sides.to.store.popularItems()
  expect(counts).toHaveLength(8)
  expect(counts.map(({ views }) => views)).toEqual(Array(8).fill(rounds))
})
test('an external session moves with fields of any name, up to 10,000', async () => {
  const sides = await world.sides()
  const names = Array.from({ length: 9_995 }, (_, index) => `field ${index}`)
  const odd = ['', '\0', '\n', '\ud800', 'x'.repeat(300)]
  const fields = Object.fromEntries([...odd, ...names].map((name) => [name, name]))
  await externalSessions(sides.from.store).put('one', fields)
  expect(await createMover(sides).move(['ext:one'])).toBe(1)
  expect(await externalSessions(sides.to.store).read('one')).toEqual({
    user: null,
    fields,
    version: 1,
  })
})
