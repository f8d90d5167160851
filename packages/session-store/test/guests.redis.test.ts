import { describe, expect, test } from 'vitest'
import type { Operation } from '../src/command.ts'
import type { SessionStore } from '../src/index.ts'
import { loginFrom, loginWith, type OldRecords, oldRecords } from '../src/sessions/log-in.ts'
import { gone, idOf } from './fixture.ts'
import { Clock, layouts, present, retentionServer, sweep } from './retention-fixture.ts'
import { issueToken } from './write-session.ts'

const server = retentionServer()
const clock = new Clock()

const guestOf = async (store: SessionStore) => await inUse(store, (await store.loginGuest()).token)
const sessionOfAda = async (store: SessionStore) =>
  await inUse(store, (await store.login('ada', { label: 'Firefox' })).token)

async function inUse(store: SessionStore, token: string): Promise<string> {
  await store.recordView(token, 'book')
  await store.recordView(token, 'pen')
  await store.patch(token, { cart: ['book'] })
  return token
}

describe.each(layouts)('%s', (_, keys) => {
  /** All keys except the item counts, which remain. */
  const left = async () => {
    const names = Object.keys(await server.dump())
    return names.filter((key) => !keys.allPopular().includes(key) && key !== keys.janitorTasks())
  }

  test('a guest cannot list or end sessions of other guests', async () => {
    const store = await server.storeForThisTest(clock, { keys })
    const [one, other] = [await guestOf(store), await guestOf(store)]
    expect(await store.recordView(one, 'book')).toMatchObject({ user: null })
    expect(await store.userSessions(one)).toEqual({ sessions: [] })
    expect(await store.revokeSession(one, idOf(other))).toBe(false)
    expect(await store.logoutEverywhere(one)).toBe(1)
    expect(await store.checkToken(other)).toMatchObject({ user: null })
    await expect(store.checkToken(one)).rejects.toMatchObject(gone)
    await store.logout(other)
    expect(await left()).toEqual([])
  })

  test('a login takes over views and data of a guest with a new token, and ends the guest session', async () => {
    const store = await server.storeForThisTest(clock, { keys })
    const guest = await guestOf(store)
    clock.pass(10)
    const viewed = await store.viewedItems(guest)
    const { token } = await store.login('ada', { from: guest })
    expect(token).not.toBe(guest)
    const data = { fields: { cart: ['book'] }, version: 1 }
    expect(await store.checkToken(token, { data: true })).toEqual({
      user: 'ada',
      lastSeenAt: clock.ms,
      data,
    })
    expect(await store.viewedItems(token)).toEqual(viewed)
    expect((await store.userSessions(token)).sessions).toMatchObject([
      { id: idOf(token), current: true },
    ])
    await expect(store.checkToken(guest)).rejects.toMatchObject(gone)
    await store.logout(token)
    await expect.poll(left).toEqual([])
    // The guest session has ended, so a second login takes nothing over.
    const again = await store.login('eve', { from: guest })
    expect(await store.data(again.token)).toEqual({ fields: {}, version: 0 })
    await store.logout(again.token)
  })

  test('a login takes nothing over from an idle guest session or a user’s session', async () => {
    const store = await server.storeForThisTest(clock, { keys, idleSeconds: 100 })
    const user = await store.login('eve')
    await store.patch(user.token, { cart: ['private'] })
    const guest = await guestOf(store)
    const fromUser = await store.login('ada', { from: user.token })
    expect(await store.data(fromUser.token)).toEqual({ fields: {}, version: 0 })
    expect(await store.checkToken(user.token)).toMatchObject({ user: 'eve' })
    clock.pass(101)
    const fromIdle = await store.login('ada', { from: guest })
    expect(await store.data(fromIdle.token)).toEqual({ fields: {}, version: 0 })
  })

  /** Logs in as ada; `between` runs before the operation with that number. */
  function loginWhile(
    store: SessionStore,
    guest: string,
    between: (operation: number) => Promise<unknown>,
  ) {
    let operation = 0
    const runner = {
      async run<Result>(next: Operation<Result>): Promise<Result> {
        await between(operation++)
        return await server.run(next)
      },
    }
    const token = issueToken(store)
    const settings = { keys, now: () => clock.ms, idleSeconds: 100 }
    const session = { id: idOf(token), user: 'ada', label: 'Chrome' }
    return { token, done: loginFrom(runner, settings, { old: idOf(guest), session }) }
  }

  test('a user who logs in again keeps views and data, in a new session with its own label', async () => {
    const store = await server.storeForThisTest(clock, { keys, maxSessionsPerUser: 2 })
    const [{ token: other }, old] = [await store.login('ada'), await sessionOfAda(store)]
    clock.pass(10)
    const viewed = await store.viewedItems(old)
    const { token } = await store.login('ada', { from: old, label: 'Chrome' })
    expect(await store.data(token)).toEqual({ fields: { cart: ['book'] }, version: 1 })
    expect(await store.viewedItems(token)).toEqual(viewed)
    await expect(store.checkToken(old)).rejects.toMatchObject(gone)
    // The old session does not count towards the maximum.
    expect((await store.userSessions(token)).sessions).toMatchObject([
      { id: idOf(token), loggedInAt: clock.ms, label: 'Chrome' },
      { id: idOf(other) },
    ])
    await expect.poll(() => server.redis.zcard(keys.sessions('ada'))).toBe(2)
    const { token: third } = await store.login('ada', { from: token })
    expect((await store.userSessions(third)).sessions[0]).not.toHaveProperty('label')
    expect(await store.logoutEverywhere(third)).toBe(2)
    await expect.poll(left).toEqual([])
  })

  test.each([
    [0, 'a guest', guestOf],
    [1, 'a guest', guestOf],
    [2, 'a guest', guestOf],
    [0, 'the user', sessionOfAda],
    [1, 'the user', sessionOfAda],
    [2, 'the user', sessionOfAda],
  ])('before round trip %i, writes of a session of %s are not lost', async (at, _, start) => {
    const store = await server.storeForThisTest(clock, { keys })
    const guest = await start(store)
    const { token, done } = loginWhile(store, guest, async (operation) => {
      if (operation !== at) return
      clock.pass(1)
      await store.patch(guest, { theme: 'dark', cart: undefined })
      await store.recordView(guest, 'cup')
    })
    await done
    expect((await store.data(token)).fields).toEqual({ theme: 'dark' })
    const items = (await store.viewedItems(token)).map(({ item }) => item)
    expect(items.toSorted()).toEqual(['book', 'cup', 'pen'])
    expect((await store.userSessions(token)).sessions).toMatchObject([{ label: 'Chrome' }])
    await expect(store.checkToken(guest)).rejects.toMatchObject(gone)
    expect(await left()).not.toContain(keys.viewed(idOf(guest)))
    expect(await left()).not.toContain(keys.data(idOf(guest)))
  })

  test('a session that ends during its login stays gone', async () => {
    const store = await server.storeForThisTest(clock, { keys })
    const guest = await guestOf(store)
    const { token, done } = loginWhile(store, guest, async (operation) => {
      if (operation === 2) await store.patch(guest, { theme: 'dark' })
      if (operation === 3) await store.endUserSessions('ada')
    })
    await done
    await expect(store.checkToken(token)).rejects.toMatchObject(gone)
    expect(await left()).toEqual([])
  })

  test.each([
    [0, { loggedIn: false, guestLives: true }],
    [1, { loggedIn: false, guestLives: true }],
    [2, { loggedIn: true, guestLives: true }],
    [3, { loggedIn: true, guestLives: false }],
  ])(
    'a login whose round trip %i fails loses nothing written before the call',
    async (at, expected) => {
      const store = await server.storeForThisTest(clock, { keys })
      const guest = await guestOf(store)
      const { token, done } = loginWhile(store, guest, async (operation) => {
        if (operation === 2) await store.patch(guest, { late: true }) // so that the call needs its last round trip
        if (operation === at) throw new Error('no connection')
      })
      expect((await Promise.allSettled([done]))[0].status === 'fulfilled').toBe(expected.loggedIn)
      const { fields } = await store.data(expected.loggedIn ? token : guest)
      expect(fields).toMatchObject({ cart: ['book'] })
      expect(await present(store, [guest])).toEqual([expected.guestLives])
    },
  )

  test('the sweep removes leftovers of an interrupted login', async () => {
    const store = await server.storeForThisTest(clock, { keys })
    const guest = await guestOf(store)
    const before = await left()
    const [id, user] = [idOf(issueToken(store)), 'ada']
    const from = oldRecords(keys, { id: idOf(guest), user }, 0)
    const records = (await server.run(from)) as OldRecords
    const login = loginWith(keys, { id, user, label: 'Firefox' }, records, clock.ms)
    // The last two create the session and count the entries of the list.
    for (let sent = 1; sent <= login.commands.length - 2; sent++) {
      const commands = login.commands.slice(0, sent)
      await server.run({ commands, readOnly: false, read: () => undefined })
      clock.pass(61)
      expect((await sweep(store)).swept).toBeGreaterThan(0)
      expect(await left()).toEqual(before)
    }
    expect(await store.data(guest)).toMatchObject({ version: 1 })
  })
})
