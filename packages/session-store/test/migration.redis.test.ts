import { dumpOf } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import type { Operation, Reply } from '../src/core/operation.ts'
import {
  finishMigration,
  type MigrationSide,
  migrate,
  surveyMigration,
} from '../src/migration/index.ts'
import { migrationKeys } from '../src/migration/keys.ts'
import { createMover } from '../src/migration/mover.ts'
import { idOf } from './fixture.ts'
import { from, migrationOfThisFile, to } from './migration-fixture.ts'

const world = migrationOfThisFile()

test('counts are copied from the source, and an older reading that arrives late is ignored', async () => {
  const sides = await world.sides()
  const { token } = await sides.from.store.login('ada')
  for (const item of ['tea', 'tea', 'book']) await sides.from.store.recordView(token, item)
  expect(await migrate(sides)).toMatchObject({ moved: 1, items: 2, views: 3 })
  expect(await migrate(sides)).toMatchObject({ moved: 0, items: 2, views: 0 })

  // This one stops after reading the counts.
  const stopped = Promise.withResolvers<void>()
  const resume = Promise.withResolvers<void>()
  const slow: MigrationSide = {
    keys: to,
    store: {
      async run(operation) {
        if (
          operation.commands.some((command) => command.includes(migrationKeys(to).ledger('tea')))
        ) {
          stopped.resolve()
          await resume.promise
        }
        return await sides.to.store.run(operation)
      },
    },
  }
  const late = migrate({ from: sides.from, to: slow })
  await stopped.promise
  await sides.from.store.run({
    commands: [['ZINCRBY', from.popular('tea'), -5, 'tea']],
    readOnly: false,
    read: () => undefined,
  })
  expect(await migrate(sides)).toMatchObject({ views: 5 })
  resume.resolve()
  expect(await late).toMatchObject({ views: 0 })
  await sides.from.store.run({
    commands: [['ZREM', from.popular('book'), 'book']], // as if the last view was undone
    readOnly: false,
    read: () => undefined,
  })
  await finishMigration(sides)
  expect(await sides.to.store.popularItems()).toEqual([{ item: 'tea', views: 7 }])
})

test('item counts are not halved before the migration is finished', async () => {
  const sides = await world.sides()
  const bridge = await world.bridge('target')
  const { token } = await bridge.login('ada')
  for (let views = 0; views < 8; views++) await bridge.recordView(token, 'tea')
  const janitors = [sides.from, sides.to].map(({ store }) =>
    store.janitor({ rescaleEverySeconds: 0, sweepEverySeconds: Number.POSITIVE_INFINITY }),
  )
  const runTwice = async () => {
    for (const janitor of [...janitors, ...janitors]) await janitor.runOnce()
  }
  await runTwice()
  expect(await bridge.popularItems()).toEqual([{ item: 'tea', views: 8 }])
  await finishMigration(sides)
  await runTwice()
  expect(await bridge.popularItems()).toEqual([{ item: 'tea', views: 4 }])
})

test('pages of a user with sessions in both stores', async () => {
  const sides = await world.sides()
  const bridges = [await world.bridge('source'), await world.bridge('target')]
  const tokens: string[] = []
  for (let login = 0; login < 9; login++) {
    world.clock.ms++
    tokens.push((await sides.from.store.login('ada')).token)
  }
  const ids = tokens.map(idOf)
  await createMover(sides).move([0, 1, 4, 5, 7].map((index) => ids[index] ?? ''))
  for (const bridge of bridges) {
    for (const limit of [1, 2, 4, 100]) {
      const found: string[] = []
      let cursor: string | undefined
      do {
        const page = await bridge.userSessions(tokens[8] ?? '', { limit, cursor })
        found.push(...page.sessions.map(({ id }) => id))
        cursor = page.nextCursor
      } while (cursor !== undefined)
      expect(found).toEqual(ids.toReversed())
    }
  }
  const [source] = bridges
  expect(await source?.eraseUser('ada')).toBe(9)
  for (const { store } of [sides.from, sides.to]) {
    expect((await store.exportUser('ada')).sessions).toEqual([])
  }
})

test('while the source is down, moved sessions work, and no other session is logged out', async () => {
  const { from: source, to: target } = await world.sides()
  const bridge = await world.bridge('target')
  const moved = await bridge.login('ada')
  const left = await source.store.login('bob')
  world.servers[0]?.program.signal('SIGKILL')
  try {
    await expect.poll(() => source.store.info?.ready).toBe(0)
    expect(await bridge.recordView(moved.token, 'tea')).toMatchObject({ user: 'ada' })
    await expect
      .poll(() => bridge.checkToken(left.token).catch(({ statusCode }) => statusCode))
      .toBe(503)
    await expect(migrate({ from: source, to: target })).rejects.toMatchObject({
      code: 'ONETRIP_NOT_SENT',
    })
  } finally {
    await world.servers[0]?.restart()
  }
})

test('ping and runOnEach use the servers of both sides', async () => {
  const bridge = await world.bridge('target')
  const [away, own] = world.servers
  const operation: Operation<Reply | undefined> = {
    commands: [['PING']],
    readOnly: true,
    read: ([reply]) => reply,
  }
  const answers = [own, away].map((server) => ({ node: server?.socket, result: 'PONG' }))
  expect(await bridge.runOnEach(operation)).toEqual(answers)
  expect(await bridge.ping()).toEqual([{ node: own?.socket }, { node: away?.socket }])
  expect(bridge.info).toMatchObject({ connections: 2, ready: 2, inFlight: 0 })
  away?.program.signal('SIGKILL')
  try {
    const error = { code: 'ONETRIP_NOT_SENT' }
    await expect.poll(() => bridge.ping()).toMatchObject([{ node: own?.socket }, { error }])
    await expect.poll(() => bridge.info).toMatchObject({ connections: 2, ready: 1 })
    expect(await bridge.runOnEach(operation)).toMatchObject([answers[0], { error: {} }])
  } finally {
    await away?.restart()
  }
})

test('a survey writes nothing, and says whether a process serves with the target as home', async () => {
  const sides = await world.sides()
  const { token } = await sides.from.store.login('ada')
  await sides.from.store.recordView(token, 'tea')
  const before = await Promise.all(world.admins.map(dumpOf))
  expect(await surveyMigration(sides)).toEqual({
    opened: false,
    sessions: 1,
    moving: 0,
    items: 1,
  })
  await world.bridge('source')
  expect(await Promise.all(world.admins.map(dumpOf))).toEqual(before)
  await world.bridge('target')
  expect(await surveyMigration(sides)).toMatchObject({ opened: true })
})

test('a migration that is finished, or has another number of partitions, is refused', async () => {
  const sides = await world.sides()
  const bridge = await world.bridge('target')
  const { token } = await sides.from.store.login('ada')
  const wider = { ...sides, to: { ...sides.to, keys: partitionedKeys(16) } }
  for (const begin of [migrate, surveyMigration, finishMigration]) {
    await expect(begin(wider)).rejects.toThrow('started with 8 partitions, not 16')
  }
  await expect(finishMigration(sides)).rejects.toThrow('the source still holds 1 sessions')
  await migrate(sides)
  await finishMigration(sides)
  expect(await world.admins[1].hlen(migrationKeys(to).moved('any'))).toBe(1)
  for (const begin of [migrate, surveyMigration, finishMigration]) {
    await expect(begin(sides)).rejects.toThrow('is finished')
  }
  await expect(bridge.ready()).rejects.toThrow('is finished')
  expect(await bridge.checkToken(token)).toMatchObject({ user: 'ada' })
})
