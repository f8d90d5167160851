import { describe, expect, test } from 'vitest'
import { idOf, inMemory } from './fixture.ts'
import { Clock, layouts, retentionServer } from './retention-fixture.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

const server = retentionServer()
const clock = new Clock()

describe.each(layouts)('%s', (_, keys) => {
  test('exports and erases all sessions of a user, and of no other user', async () => {
    const store = await server.storeForThisTest(clock, { keys })
    const at = clock.ms
    const { token } = await store.login('ada', { label: 'Firefox' })
    const bare = issueToken(store)
    await runUpdateToken(store, bare, 'ada', 'pen')
    clock.pass(1.5)
    await store.recordView(token, 'book')
    await store.patch(token, { cart: ['book'], note: null })
    const { token: eve } = await store.login('eve')
    const { token: guest } = await store.loginGuest()
    for (const other of [eve, guest]) {
      await store.recordView(other, 'book')
      await store.patch(other, { cart: ['secret'] })
    }

    const { user, sessions } = await store.exportUser('ada')
    expect(user).toBe('ada')
    expect(sessions).toHaveLength(2)
    expect(sessions).toEqual(
      expect.arrayContaining([
        {
          id: idOf(token),
          loggedInAt: at,
          label: 'Firefox',
          lastSeenAt: at + 1500,
          viewed: [{ item: 'book', viewedAt: at + 1500 }],
          data: { cart: ['book'], note: null },
        },
        {
          id: idOf(bare),
          loggedInAt: null,
          lastSeenAt: at,
          viewed: [{ item: 'pen', viewedAt: at }],
          data: {},
        },
      ]),
    )
    expect(await store.exportUser('nobody')).toEqual({ user: 'nobody', sessions: [] })

    expect(await store.eraseUser('ada')).toBe(2)
    expect(await store.exportUser('ada')).toEqual({ user: 'ada', sessions: [] })
    const dump = JSON.stringify(await server.dump())
    for (const trace of ['ada', 'Firefox', idOf(token), idOf(bare)])
      expect(dump).not.toContain(trace)
    expect(await store.checkToken(eve, { data: true })).toMatchObject({ user: 'eve' })
    expect((await store.data(guest)).fields).toEqual({ cart: ['secret'] })
    expect(await store.eraseUser('ada')).toBe(0)
  })

  test.skipIf(inMemory)(
    'walks many sessions in steps, reports progress, and can be stopped',
    async () => {
      const store = await server.storeForThisTest(clock, { keys, maxInFlight: 3_000 })
      await Promise.all(
        Array.from({ length: 3_000 }, (_, index) =>
          runUpdateToken(store, issueToken(store), index % 10 === 0 ? 'ada' : `user ${index}`),
        ),
      )
      const looked: number[] = []
      const onProgress = (progress: { looked: number }) => looked.push(progress.looked)
      const { sessions } = await store.exportUser('ada', { onProgress })
      expect(new Set(sessions.map(({ id }) => id)).size).toBe(300)
      expect(sessions).toHaveLength(300)
      expect(looked.length).toBeGreaterThan(2)
      expect(looked.at(-1)).toBeGreaterThanOrEqual(3_000)

      const controller = new AbortController()
      const stop = () => controller.abort(new Error('enough'))
      const stopped = store.eraseUser('ada', { onProgress: stop, signal: controller.signal })
      await expect(stopped).rejects.toThrow('enough')
      const left = (await store.exportUser('ada')).sessions.length
      expect(left).toBeLessThan(300)
      expect(left).toBeGreaterThan(0)
      expect(await store.eraseUser('ada')).toBe(left)
      expect((await store.exportUser('ada')).sessions).toEqual([])
      const logins = keys.parts().map(({ login }) => server.redis.hlen(login))
      expect((await Promise.all(logins)).reduce((sum, count) => sum + count)).toBe(2_700)
    },
  )
})
