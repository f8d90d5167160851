import fc from 'fast-check'
import { expect, test } from 'vitest'
import { finishMigration, migrate, surveyMigration } from '../src/migration/index.ts'
import { idOf } from './fixture.ts'
import { killed, killedAfter, migrationOfThisFile } from './migration-fixture.ts'
import { Model } from './model.ts'

const world = migrationOfThisFile()

const home = fc.constantFrom('source', 'target')
const session = fc.nat({ max: 20 })
const user = fc.constantFrom('ada', 'bob')
const item = fc.constantFrom('tea', 'book', 'lamp')
const of = <Type extends string, Fields extends object>(
  type: Type,
  fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
) => fc.record(fields).map((values) => ({ type, ...(values as Fields) }))

const step = fc.oneof(
  { weight: 3, arbitrary: of('login', { home, user }) },
  { weight: 1, arbitrary: of('loginGuest', { home }) },
  { weight: 1, arbitrary: of('loginFrom', { home, session, user }) },
  { weight: 8, arbitrary: of('view', { home, session, item }) },
  { weight: 3, arbitrary: of('patch', { home, session, item }) },
  { weight: 2, arbitrary: of('logout', { home, session }) },
  { weight: 1, arbitrary: of('logoutEverywhere', { home, session }) },
  { weight: 1, arbitrary: of('revoke', { home, session, other: session }) },
  {
    weight: 4,
    arbitrary: of('migrate', {
      operations: fc.nat({ max: 40 }),
      sent: fc.boolean(),
      batchSize: fc.constantFrom(1, 2, 100),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

const outcome = <Result>(call: Promise<Result>): Promise<Result | string> =>
  call.catch((error: { code?: string }) => error.code ?? String(error))

const UNKNOWN = 'ONETRIP_UNKNOWN_SESSION'

test('calls to old and new processes while migrations are killed: nothing is lost, and nothing comes back', {
  timeout: 300_000,
}, async () => {
  const bridges = { source: await world.bridge('source'), target: await world.bridge('target') }
  const sides = await world.sides()
  const target = world.storeOf('to')
  await target.ready()

  let model = new Model()
  let tokens: string[] = []
  const userIn = (token: string) => model.login.get(token) || null

  /** Takes one step and compares its result with that of the model. */
  async function take(step: Exclude<Step, { type: 'migrate' }>): Promise<void> {
    const now = ++world.clock.ms
    const store = bridges[step.home as keyof typeof bridges]
    if (step.type === 'login' || step.type === 'loginGuest') {
      const { token } = await (step.type === 'login' ? store.login(step.user) : store.loginGuest())
      tokens.push(token)
      model.updateToken(token, step.type === 'login' ? step.user : '', undefined, now)
      return
    }
    const token = tokens[step.session % tokens.length]
    if (token === undefined) return
    const owner = model.login.get(token)
    switch (step.type) {
      case 'view': {
        const seen = await outcome(store.recordView(token, step.item))
        model.recordView(token, step.item, now)
        if (owner === undefined) expect(seen).toBe(UNKNOWN)
        else expect(seen).toMatchObject({ user: userIn(token) })
        return
      }
      case 'patch': {
        const fields = { [step.item]: now }
        const written = await outcome(store.patch(token, fields))
        expect(written).toEqual(model.patch(token, fields, undefined, now))
        return
      }
      case 'logout':
        expect(await store.logout(token)).toBe(model.logout(token))
        return
      case 'logoutEverywhere': {
        const ended = await outcome(store.logoutEverywhere(token))
        const all = [...model.login.keys()].filter(
          (other) => other === token || (owner !== '' && model.login.get(other) === owner),
        )
        expect(ended).toBe(owner === undefined ? UNKNOWN : all.length)
        if (owner !== undefined) for (const other of all) model.logout(other)
        return
      }
      case 'revoke': {
        const other = tokens[step.other % tokens.length] ?? ''
        const revoked = await outcome(store.revokeSession(token, idOf(other)))
        const may = owner !== '' && model.login.get(other) === owner
        expect(revoked).toBe(owner === undefined ? UNKNOWN : may)
        if (owner !== undefined && may) model.logout(other)
        return
      }
      case 'loginFrom': {
        const fresh = (await store.login(step.user, { from: token })).token
        tokens.push(fresh)
        model.updateToken(fresh, step.user, undefined, now)
        if (owner !== '' && owner !== step.user) return
        const [views, data] = [model.viewed.get(token), model.data.get(token)]
        if (views) model.viewed.set(fresh, views)
        if (data) model.data.set(fresh, data)
        model.logout(token)
      }
    }
  }

  async function compare(): Promise<void> {
    for (const token of tokens) {
      const session = await outcome(target.checkToken(token, { data: true }))
      const owner = model.login.get(token)
      if (owner === undefined) {
        expect(session).toBe(UNKNOWN)
        continue
      }
      const lastSeenAt = model.recent.get(token)
      expect(session).toEqual({ user: userIn(token), lastSeenAt, data: model.dataOf(token) })
      expect(await target.viewedItems(token)).toEqual(model.viewedItems(token))
      if (owner === '') continue
      const { sessions } = await target.userSessions(token)
      const own = [...model.login].filter(([, user]) => user === owner)
      expect(sessions.map(({ id }) => id).sort()).toEqual(own.map(([token]) => idOf(token)).sort())
    }
    const counts = (await target.popularItems(100)).map(({ item, views }) => [item, views] as const)
    expect(new Map(counts)).toEqual(model.views)
  }

  async function play(steps: readonly Step[]): Promise<void> {
    await Promise.all(world.admins.map((admin) => admin.flushall()))
    model = new Model()
    tokens = []
    const migrations: Promise<void>[] = []
    for (const step of steps) {
      if (step.type !== 'migrate') {
        await take(step)
        continue
      }
      const { operations, sent, batchSize } = step
      const dying = killedAfter(operations, sent)
      const run = migrate({ from: dying(sides.from), to: dying(sides.to) }, { batchSize })
      migrations.push(
        run.then(
          () => {},
          (error) => expect(error).toBe(killed),
        ),
      )
    }
    await Promise.all(migrations)
    await migrate(sides)
    expect(await surveyMigration(sides)).toMatchObject({ sessions: 0, moving: 0 })
    await finishMigration(sides)
    await compare()
  }

  const histories = fc.array(step, { minLength: 5, maxLength: 60, size: 'max' })
  await fc.assert(fc.asyncProperty(histories, play), { numRuns: 300 })
})
